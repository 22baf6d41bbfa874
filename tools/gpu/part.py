"""What a part of the check is. every_part.py lists them all, in the order in which they are tried."""
import dataclasses
from collections.abc import Callable, Iterable

RUNS = (1, 2, 3)
# The row of a part of which nothing could be tried; it goes when the part begins after all.
ALL_OF_IT = "all of it"


@dataclasses.dataclass(frozen=True)
class Part:
    """Rows of one subject.

    rows: takes a runner.Context and gives rows as they come, each made by runner.attempt(context, what, action): it returns the
    row of an earlier run that passed or was skipped without calling `action`, so what an action needs of another's it makes
    itself, once, when first asked (runner.once). `what` is unique within the part, and the same in every run.
    """
    name: str  # as --parts takes it
    run: int  # which of the three runs of nine minutes it belongs to
    seconds: float  # what all of it may take; the row that is cut then says "no time"
    rows: Callable[..., Iterable[dict]]
    alone: bool = False  # on the machine: it is timed, or its ranks are killed. Others run side by side.
    opened: bool = True  # pointless where ftexec cannot open the GPU in any way
    plans: Callable[[], dict] = dict  # that it needs: name -> (arguments of `ftc model`, arguments of `ftc compile`)
    programs: tuple = ()  # that it needs beside artifacts.PROGRAMS: their places in a build, "test/ft_name"
