"""All parts of the check, in the order in which they are tried. One line here is all that a new one needs."""
import conformance
import everything
import models
import one_gpu
import opening
import sanitizer
import shapes
import training

PARTS = (
    *opening.PARTS,
    *conformance.PARTS,
    *training.PARTS,
    *everything.PARTS,
    *shapes.PARTS,
    *one_gpu.PARTS,
    *models.PARTS,
    *sanitizer.PARTS,
)


def named(names):
    """Those of them, in their order here."""
    return tuple(part for part in PARTS if part.name in names)
