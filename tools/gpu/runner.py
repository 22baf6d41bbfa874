"""Runs programs within limits of time, and makes rows {what, result, seconds, detail} of what they did.

result is one of passed, FAILED, skipped (this machine lacks what is needed) and "no time"; a row that failed has the last lines
that were printed as "output".
"""
import concurrent.futures
import contextlib
import dataclasses
import functools
import json
import os
import pathlib
import queue
import re
import signal
import subprocess
import tempfile
import threading
import time

from part import ALL_OF_IT

LINES_KEPT = 60
DONE = ("passed", "skipped")  # results that are not tried for again
EMULATED_PATIENCE = 8  # times as long as a GPU may take


class Failed(Exception):
    def __init__(self, text, output="", status=None):
        super().__init__(text)
        self.output, self.status = output, status


class Skipped(Exception):
    pass


class OutOfTime(Exception):
    """Of the context; a program that is slower than its own limit has failed."""


class Programs:
    """Those that run now, so many at a time, each in a session of its own, so that its children end with it."""

    def __init__(self, at_a_time):
        self.gate, self.lock, self.running, self.closed = threading.Semaphore(at_a_time), threading.Lock(), set(), False

    def start(self, command, out, env):
        with self.lock:
            if self.closed:
                raise OutOfTime("not begun")
            process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=out, stderr=subprocess.STDOUT, env=env,
                                       start_new_session=True)
            self.running.add(process.pid)
        return process

    def ended(self, process):
        with self.lock:
            self.running.discard(process.pid)

    def end_all(self):
        with self.lock:
            self.closed = True
            for pid in self.running:
                end_session(pid)


def end_session(session):
    """Kills a program and all that it started, process groups of their own included."""
    for path in pathlib.Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError, ValueError):  # it has ended meanwhile
            if int(path.read_text(errors="replace").rpartition(")")[2].split()[3]) == session:
                os.kill(int(path.parent.name), signal.SIGKILL)


@dataclasses.dataclass(frozen=True)
class Context:
    made: object  # artifacts.Build or artifacts.Bundle: program(name), plan(name), arena_bytes(name)
    work: pathlib.Path  # goes when the check ends
    results: pathlib.Path  # what comes back beside the JSON, traces for one
    gpus: list  # [{"name", "bytes"}]
    emulated: bool  # the GPUs are: nothing is worth timing, and NVIDIA's libraries are not there
    ftexec: pathlib.Path
    steps: int  # of a run against the CPU
    text: pathlib.Path
    environment: dict  # of our programs
    deadline: float
    programs: Programs
    python: str = ""  # the one that has torch
    peer: object = dict  # waits for its PyTorch, as machine.torch_of says it; "reason" when there is none to compare with
    options: tuple = ()  # of every ftexec on the GPU: what the opening has found to be needed
    part: str = ""
    earlier: dict = dataclasses.field(default_factory=dict)  # rows of runs before this one, by (part, what)
    ops: tuple = ()  # that the conformance cases are tried of; none: of all

    @property
    def patience(self):
        """What limits that suit a GPU are multiplied with."""
        return EMULATED_PATIENCE if self.emulated else 1

    @property
    def devices(self):
        return len(self.gpus)

    def left(self):
        return self.deadline - time.monotonic()

    def within(self, seconds):
        """The same with a deadline so many seconds from now, or sooner."""
        return dataclasses.replace(self, deadline=min(self.deadline, time.monotonic() + seconds))

    def file(self, suffix):
        """A new file in the folder for work."""
        handle, name = tempfile.mkstemp(suffix=suffix, dir=self.work)
        os.close(handle)
        return pathlib.Path(name)


def execute(context, command, env=None, limit=120.0):
    """What a program printed that must succeed within `limit` seconds, and before the context's deadline."""
    if not context.programs.gate.acquire(timeout=max(0, context.left())):
        raise OutOfTime("not begun")
    try:
        log = context.file(".log")
        status = run_to_end(context, [str(word) for word in command], log, env, limit * context.patience)
    finally:
        context.programs.gate.release()
    if status:
        raise Failed(f"{how_it_ended(status)}: {last_line(log)}", tail(log), status)
    return log.read_text(errors="replace")


def run_to_end(context, command, log, env, limit):
    seconds = min(limit, context.left())
    if seconds < 1:
        raise OutOfTime("not begun")
    with log.open("wb") as out:
        process = context.programs.start(command, out, context.environment if env is None else env)
    try:
        return process.wait(seconds)
    except subprocess.TimeoutExpired:
        end_session(process.pid)
        with contextlib.suppress(subprocess.TimeoutExpired):  # a driver may keep hold of it: we go on
            process.wait(10)
        if seconds < limit:
            raise OutOfTime(f"stopped after {seconds:.0f} s, when the time was up") from None
        raise Failed(f"no end after {seconds:.0f} s; stopped", tail(log)) from None
    finally:
        end_session(process.pid)  # what it left behind
        context.programs.ended(process)


def how_it_ended(status):
    return f"killed by {signal.Signals(-status).name}" if status < 0 else f"status {status}"


def tail(log):
    return "\n".join(log.read_text(errors="replace").splitlines()[-LINES_KEPT:])


def last_line(log):
    """That says something: not a stack's, not what a launcher adds."""
    lines = [line for line in log.read_text(errors="replace").splitlines() if line.strip()]
    told = [line for line in lines if re.search(r"error|fail|cannot|ftexec:", line, re.IGNORECASE)]
    return (told or lines or ["nothing said"])[-1].strip()


def row(what, begin, result, detail="", output=""):
    made = {"what": what, "result": result, "seconds": round(time.monotonic() - begin, 1), "detail": detail}
    return {**made, "output": output} if output else made


def attempt(context, what, action):
    """The row of one action, which returns what to say, or that and more keys for the row, or raises. Nothing that goes wrong
    in it ends the check. What an earlier run has done with is not done again: then that row is returned."""
    begin, before = time.monotonic(), context.earlier.get((context.part, what))
    if before and before["result"] in DONE:
        return before
    try:
        if context.left() < 1:
            raise OutOfTime("not begun")
        said = action()
        detail, more = said if isinstance(said, tuple) else (said, {})
        return {**row(what, begin, "passed", detail), **more}
    except Skipped as reason:
        return row(what, begin, "skipped", str(reason))
    except OutOfTime as error:
        return row(what, begin, "no time", str(error))
    except Failed as error:
        return row(what, begin, "FAILED", str(error), error.output)
    except Exception as error:
        return row(what, begin, "FAILED", f"the check itself: {error!r}")


def once(make):
    """`make` with its value, or what it raised, kept for each argument: threads that ask for the same wait for one."""
    lock, started = threading.Lock(), {}

    @functools.wraps(make)
    def wrapped(*key):
        with lock:
            first = key not in started
            future = started.setdefault(key, concurrent.futures.Future())
        if first:
            try:
                future.set_result(make(*key))
            except Exception as error:
                future.set_exception(error)
        return future.result()
    return wrapped


def side_by_side(parts, context):
    """(part, row) of all parts as they come, and (part, None) at the end of each; each in a thread of its own."""
    rows = queue.Queue()

    def run(part):
        try:
            for made in part.rows(dataclasses.replace(context.within(part.seconds * context.patience), part=part.name)):
                rows.put((part, made))
        except Exception as error:
            rows.put((part, row(ALL_OF_IT, time.monotonic(), "FAILED", f"the check itself: {error!r}")))
        rows.put((part, None))

    for part in parts:
        threading.Thread(target=run, args=(part,), daemon=True).start()
    ended = 0
    while ended < len(parts):
        part, made = rows.get()
        ended += made is None
        yield part, made


def read_json_lines(path):
    return [json.loads(line) for line in path.read_text().splitlines()]
