"""Ends all programs of a check that was itself killed, so that none of them keeps the GPU: SIGKILL leaves no time to do it oneself.

Everything that a check starts inherits a mark in its environment. A guard, a process in a session of its own, reads from a pipe of
which the check alone has the other end: where that closes, the check is gone, however it ended, and the guard kills what bears the
mark, whatever session or group that has put itself into. As a program: guard.py MARK, with the pipe as standard input.
"""
import contextlib
import os
import pathlib
import secrets
import signal
import subprocess
import sys
import time

VARIABLE = "FT_GPU_CHECK"
QUIET = 0.5  # seconds between two looks that must both find nothing: one that begins between them has been seen by its parent
PATIENCE = 60.0  # a driver may keep hold of a process


def post():
    """Begins one for this process; whoever holds what is returned has nothing to do with it but to keep it."""
    mark = f"{os.getpid()}-{secrets.token_hex(8)}"
    os.environ[VARIABLE] = mark
    # A child that has not yet begun its program holds the pipe too, so none is missed.
    return subprocess.Popen([sys.executable, "-B", __file__, mark], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL,
                            stderr=subprocess.DEVNULL, start_new_session=True, cwd="/",
                            env={name: value for name, value in os.environ.items() if name != VARIABLE})


def marked(mark):
    """Processes of this user that bear it and have not ended."""
    wanted = f"{VARIABLE}={mark}".encode()
    for path in pathlib.Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):  # another's, or ended meanwhile
            if wanted in (path / "environ").read_bytes().split(b"\0"):
                yield int(path.name)


def end_all(mark):
    end = time.monotonic() + PATIENCE
    while found := list(marked(mark)):
        for pid in found:
            with contextlib.suppress(OSError):
                os.kill(pid, signal.SIGKILL)
        if time.monotonic() > end:
            return
        time.sleep(QUIET / 10)


def main():
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)  # it ends with the check
    while os.read(0, 1):
        pass
    end_all(sys.argv[1])
    time.sleep(QUIET)
    end_all(sys.argv[1])


if __name__ == "__main__":
    main()
