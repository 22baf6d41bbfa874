"""What the interoperation tests share: a compiled plan, a launcher of torchrun, a look at its worker processes."""
import contextlib
import json
import os
import pathlib
import random
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
BIN = pathlib.Path(os.environ.get("FT_BIN", ROOT / "build" / "bin"))
TORCHRUN = pathlib.Path(sys.executable).parent / "torchrun"
CORPUS = ROOT / "test" / "golden" / "corpus.txt"
BATCH, SEQ, LR = 4, 64, 1e-3
# Behind this folder, which has test modules of the same names.
sys.path += [str(ROOT / "test" / "golden"), str(ROOT / "test" / "e2e")]

from code_level import LEVEL  # of test/e2e


def installed_package(folder, site):
    """tools/python installed into `site` by pip: from a copy in `folder`, since pip builds where the sources are, and with the file
    beside it that has the version. Without the network: setuptools is that of this environment."""
    source = folder / "clone" / "tools" / "python"
    shutil.copytree(ROOT / "tools" / "python", source, ignore=shutil.ignore_patterns("__pycache__", "build", "*.egg-info"))
    shutil.copy(ROOT / "CMakeLists.txt", folder / "clone")
    done = subprocess.run([sys.executable, "-m", "pip", "install", "--quiet", "--no-index", "--no-build-isolation", "--no-deps", f"--target={site}", source],
                          capture_output=True, text=True)
    if done.returncode != 0:
        raise AssertionError(done.stdout + done.stderr)


def free_port():
    """Below those that the system gives to whoever connects, or another program could have it before ours binds it."""
    while True:
        port = random.randrange(20000, 32000)
        with socket.socket() as s, contextlib.suppress(OSError):
            s.bind(("127.0.0.1", port))
            return port


def environment():
    """Ours without what another launcher may have left in it."""
    left_out = ("RANK", "WORLD_SIZE", "LOCAL_", "GROUP_", "ROLE_", "MASTER_", "TORCHELASTIC_", "PET_", "SLURM_")
    return {k: v for k, v in os.environ.items() if not k.startswith(left_out)} | {"OMP_NUM_THREADS": "1"}


def compile_plan(folder, model, strategy, *shape):
    """model.mlir and plan.bin of a debug preset in `folder`; returns the plan's path."""
    mlir, plan = folder / f"{model}.mlir", folder / f"{model}-{strategy}.bin"
    subprocess.run([BIN / "ftc", "model", model, "--preset=debug", f"--batch={BATCH}", f"--seq={SEQ}", *shape, "-o", mlir],
                   check=True)
    subprocess.run([BIN / "ftc", "compile", mlir, f"--strategy={strategy}", f"--code={LEVEL}", "-o", plan], check=True)
    return plan


def ftexec(plan, steps, *options, data=CORPUS):
    return [BIN / "ftexec", plan, f"--data={data}", f"--steps={steps}", "--threads=1", "--shuffle=off", f"--lr={LR}",
            "--progress=off", *options]


def metrics_of(path):
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def wait_for(condition, seconds, what):
    """Polls until condition() is true; returns its value."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        value = condition()
        if value:
            return value
        time.sleep(0.05)
    raise AssertionError(f"not within {seconds} s: {what}")


class Agent:
    """One torchrun process, in a session of its own so that nothing of it outlives the test."""

    def __init__(self, folder, name, options, command):
        self.log = folder / f"{name}.log"
        with open(self.log, "wb") as log:
            self.process = subprocess.Popen([TORCHRUN, "--no-python", *options, *command], stdin=subprocess.DEVNULL,
                                            stdout=log, stderr=subprocess.STDOUT, env=environment(),
                                            start_new_session=True)

    def text(self):
        return self.log.read_text(errors="replace")

    def workers(self):
        """rank -> pid of its ftexec processes."""
        found = {}
        for entry in pathlib.Path("/proc").iterdir():
            if not entry.name.isdigit():
                continue
            with contextlib.suppress(OSError, IndexError):
                parent = int((entry / "stat").read_text().rsplit(")", 1)[1].split()[1])
                if parent == self.process.pid and os.readlink(entry / "exe").endswith("/ftexec"):
                    env = dict(e.split("=", 1) for e in (entry / "environ").read_text().split("\0") if "=" in e)
                    found[int(env["RANK"])] = int(entry.name)
        return found

    def wait(self, seconds=120):
        return self.process.wait(timeout=seconds)

    def end(self):
        # torchrun passes SIGTERM on to its workers; SIGKILL would orphan them.
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
            try:
                self.process.wait(timeout=40)
            except subprocess.TimeoutExpired:
                for pid in self.workers().values():
                    os.kill(pid, signal.SIGKILL)
                self.process.kill()
                self.process.wait()


class InteropTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="ft-interop-")
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def start(self, name, options, command):
        agent = Agent(self.folder, name, options, command)
        self.addCleanup(agent.end)
        return agent

    def assert_success(self, *agents):
        for agent in agents:
            self.assertEqual(agent.wait(), 0, agent.text()[-4000:])

    def assert_close(self, ours, theirs, tolerance=1e-5):
        self.assertEqual(len(ours), len(theirs))
        for step, (a, b) in enumerate(zip(ours, theirs)):
            self.assertLessEqual(abs(a - b), tolerance * abs(b), f"step {step}: {a!r} against PyTorch's {b!r}")
