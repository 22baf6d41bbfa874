"""All parts of the check, in the order in which they are tried: those of the first run first. One line here is all that a new one
needs."""
import conformance
import everything
import levers
import models
import one_gpu
import opening
import rounds
import sanitizer
import shapes
import training

PARTS = (
    # The first run of nine minutes.
    *opening.PARTS,
    *conformance.PARTS,
    *everything.PARTS,
    *training.RANKS,
    *one_gpu.PARTS,
    *models.MODELS,
    *shapes.PARTS,
    *training.PARTS,
    # The second.
    *sanitizer.PARTS,
    *models.PEERS_OF_THEM,
    # The third.
    *rounds.PARTS,
    *levers.PARTS,
)


def named(names):
    """Those of them, in their order here."""
    return tuple(part for part in PARTS if part.name in names)
