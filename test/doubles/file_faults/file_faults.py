"""Runs programs whose files fail: counts what they do to a folder, and kills or refuses at any of these calls.

    faults = FileFaults(folder)
    for call in faults.count(command).calls:
        done = faults.run(command, at=call.number, do="kill")
    record = faults.record(command)         # for power_cut.PowerCut

README.md of this folder says what is seen and what each fault does.
"""

import dataclasses
import os
import pathlib
import signal
import subprocess
import tempfile

from record import WRITES, FaultsError, read_calls, read_state
from tree import identities, read_tree

FAULTS = ("kill", "kill_all", "short", "eio", "eio_sticky", "enospc", "enospc_sticky", "full", "erofs", "erofs_sticky", "readonly")


def library():
    """The library to be preloaded: FT_FILE_FAULTS, or where the build puts it."""
    found = os.environ.get("FT_FILE_FAULTS")
    path = pathlib.Path(found) if found else pathlib.Path(os.environ.get("FT_BIN", "build/bin")).parent / "test/libft_file_faults.so"
    if not path.exists():
        raise FaultsError(f"{path} is missing; build ft_file_faults")
    return path.resolve()


@dataclasses.dataclass
class Count:
    """What one run does to the folder: the calls of the processes of one rank, as they began."""
    done: subprocess.CompletedProcess
    calls: list

    @property
    def total(self):
        return len(self.calls)

    @property
    def kinds(self):
        return {kind: sum(call.kind == kind for call in self.calls) for kind in sorted({call.kind for call in self.calls})}

    def numbers(self, *kinds):
        """The numbers of the calls of these kinds, for FileFaults.run(at=)."""
        return [call.number for call in self.calls if call.kind in kinds]

    @property
    def writes(self):
        return self.numbers(*WRITES)


@dataclasses.dataclass
class Run:
    """A run with a fault. `fired` is None where no process came to that call, or a short write found nothing to cut."""
    returncode: int
    stdout: str
    stderr: str
    fired: object


@dataclasses.dataclass
class Record:
    """All that a run did to the folder, and what the folder was before and after."""
    prefix: str
    calls: list
    before: dict  # tree.read_tree
    names: dict  # tree.identities: which names are one file
    after: dict
    done: Run
    killed: bool = False  # a call in flight in another thread may then have been performed and not recorded


class FileFaults:
    """Faults in the files below the folder `prefix`, which must exist. `mark`: a file elsewhere that the programs write to (a
    log, metrics): a record holds what they said there, so that a checker knows what was promised before a power cut.
    `env`: the environment of the programs (this process's if not given). `timeout`: seconds for a run; then all that it
    started is killed, and subprocess.TimeoutExpired raised."""

    def __init__(self, prefix, mark=None, env=None, timeout=300):
        self.prefix = os.path.realpath(prefix)
        if not os.path.isdir(self.prefix):
            raise FaultsError(f"{prefix} is no folder")
        self.mark = os.path.realpath(mark) if mark else None
        self.env, self.timeout = dict(os.environ if env is None else env), timeout
        self.library = library()

    def count(self, command, rank=0, **options):
        """Runs without a fault; the Count of the process of `rank` that touches the folder. There must not be two: each counts
        its own calls, so a number would not say which call it is."""
        with tempfile.TemporaryDirectory(prefix="ft-faults-") as scratch:
            done, state, calls = self._run(scratch, command, {}, record=True, **options)
        mine = [call for call in calls if call.rank == rank and call.kind != "mark"]
        counted = sum(process.calls for process in state.processes if process.rank == rank)
        if counted != len(mine):
            raise FaultsError(f"{counted} calls were counted, and {len(mine)} recorded: a process was killed in one")
        if len({call.pid for call in mine}) > 1:
            raise FaultsError(f"several processes of rank {rank} touch {self.prefix}; use record()")
        return Count(done, mine)

    def run(self, command, at, do="kill", when="before", rank=0, **options):
        """Runs, and has call number `at` of the first process of `rank` (-1: of any) that comes there suffer `do`."""
        with tempfile.TemporaryDirectory(prefix="ft-faults-") as scratch:
            done, state, _ = self._run(scratch, command, self._fault(at, do, when, rank), record=False, **options)
        return Run(done.returncode, done.stdout, done.stderr, state.fired)

    def record(self, command, at=None, do="kill", when="before", rank=0, **options):
        """Runs, with a fault if `at` is given, and records every call, with the bytes written."""
        before, names = read_tree(self.prefix), identities(self.prefix)
        with tempfile.TemporaryDirectory(prefix="ft-faults-") as scratch:
            fault = {} if at is None else self._fault(at, do, when, rank)
            done, state, calls = self._run(scratch, command, fault, record=True, **options)
        return Record(self.prefix, calls, before, names, read_tree(self.prefix),
                      Run(done.returncode, done.stdout, done.stderr, state.fired), bool(state.fired) and do.startswith("kill"))

    @staticmethod
    def _fault(at, do, when, rank):
        return {"FT_FAULTS_AT": at, "FT_FAULTS_DO": do, "FT_FAULTS_WHEN": when, "FT_FAULTS_RANK": rank}

    def _run(self, scratch, command, fault, record, env=None, cwd=None):
        state, log = os.path.join(scratch, "state"), os.path.join(scratch, "record")
        variables = {k: v for k, v in (self.env if env is None else env).items() if not k.startswith("FT_FAULTS_")}
        variables |= {"FT_FAULTS_PREFIX": self.prefix, "FT_FAULTS_STATE": state, **fault,
                      "LD_PRELOAD": " ".join(filter(None, [str(self.library), variables.get("LD_PRELOAD")]))}
        if record:
            variables["FT_FAULTS_RECORD"] = log
        if self.mark:
            variables["FT_FAULTS_MARK"] = self.mark
        command = [str(c) for c in command]
        process = subprocess.Popen(command, env={k: str(v) for k, v in variables.items()}, cwd=cwd, text=True, errors="replace",
                                   stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                   start_new_session=True)
        try:
            out, err = process.communicate(timeout=self.timeout)
        except BaseException:
            os.killpg(process.pid, signal.SIGKILL)
            process.communicate()
            raise
        seen = read_state(state)
        if seen.unseen:
            raise FaultsError(f"not all that was done below {self.prefix} can be counted: {seen.unseen}")
        if not seen.processes:
            raise FaultsError(f"{command[0]} did not load {self.library}: is it linked statically?")
        return subprocess.CompletedProcess(command, process.returncode, out, err), seen, read_calls(log)
