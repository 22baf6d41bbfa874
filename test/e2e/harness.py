"""What the end-to-end tests share: a scratch folder, running our programs, reading what they write."""

import contextlib
import json
import os
import pathlib
import re
import shutil
import subprocess
import tempfile
import unittest

from code_level import LEVEL

BIN = pathlib.Path(os.environ.get("FT_BIN", "build/bin")).resolve()
SOURCE = pathlib.Path(os.environ.get("FT_SOURCE", ".")).resolve()
STRATEGIES = ("no_shard", "shard_grad_op", "full_shard")
MODELS = ("gpt2", "llama", "free_transformer")

# Variables of a launcher around the tests must not reach the ranks that they start.
LAUNCHER_VARIABLES = ("RANK", "LOCAL_RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE", "GROUP_RANK", "MASTER_ADDR", "MASTER_PORT")

LAUNCHER_PREFIXES = ("TORCHELASTIC_", "PET_", "SLURM", "OMPI_", "PMI", "MPI_LOCAL", "MV2_", "PALS_", "JOB_COMPLETION_INDEX")


def environment(**extra):
    env = {k: v for k, v in os.environ.items() if k not in LAUNCHER_VARIABLES and not k.startswith(LAUNCHER_PREFIXES)}
    env.update({k: str(v) for k, v in extra.items()})
    return env


def with_code(command):
    """Plans have code for this machine alone where a test says nothing: that of others is three quarters of the time."""
    compiles = command[:2] == ["ftc", "compile"] and "-o" in command and not any(c.startswith("--code") for c in command)
    return [*command, f"--code={LEVEL}"] if compiles else command


def run(*command, timeout=300, env=None):
    """Runs a program of ours (named without folder) or any other; returns the CompletedProcess, text captured."""
    command = with_code([str(c) for c in command])
    command[0] = str(BIN / command[0]) if (BIN / command[0]).exists() else command[0]
    return subprocess.run(command, capture_output=True, text=True, timeout=timeout, env=env or environment(),
                          stdin=subprocess.DEVNULL, errors="replace")


def children(pid):
    """Process id -> program name (its first 15 letters) of the children of a process."""
    found = {}
    for child in pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text().split():
        with contextlib.suppress(OSError):  # it has ended meanwhile
            found[int(child)] = pathlib.Path(f"/proc/{child}/comm").read_text().strip()
    return found


def command_lines():
    """What runs on this machine: the arguments of each process, in one line each."""
    found = []
    for path in pathlib.Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):  # it has ended meanwhile
            found.append(path.read_bytes().rstrip(b"\0").replace(b"\0", b" ").decode(errors="replace"))
    return found


def metrics(path):
    with open(path) as lines:
        return [json.loads(line) for line in lines]


def left_in_shared_memory():
    """Segments of processes that have ended: others may be running meanwhile."""
    found = [(path.name, re.match(r"ftexec-(\d+)-", path.name)) for path in pathlib.Path("/dev/shm").iterdir()]
    return [name for name, match in found if match and not pathlib.Path(f"/proc/{match[1]}").exists()]


class EndToEnd(unittest.TestCase):
    """A test with a folder of its own, `self.dir`, and English text in `self.text`."""

    @classmethod
    def setUpClass(cls):
        cls.shared = pathlib.Path(tempfile.mkdtemp(prefix="ft-e2e-"))
        cls.addClassCleanup(shutil.rmtree, cls.shared, ignore_errors=True)
        cls.text = cls.shared / "text.txt"
        cls.text.write_bytes((SOURCE / "LICENSE").read_bytes())
        cls.plans = {}

    def setUp(self):
        self.dir = pathlib.Path(tempfile.mkdtemp(dir=self.shared))

    def check(self, *command, **kwargs):
        """Runs and expects success."""
        done = run(*command, **kwargs)
        self.assertEqual(done.returncode, 0, f"{' '.join(map(str, command))}\n{done.stdout}\n{done.stderr}")
        return done

    def plan(self, model, strategy, *options):
        """Path of a compiled plan of a debug preset; compiled once per class."""
        key = (model, strategy, *options)
        if key not in self.plans:
            stem = "-".join(key).replace("/", "_").replace("=", "_")
            source, target = self.shared / f"{stem}.mlir", self.shared / f"{stem}.bin"
            self.check("ftc", "model", model, *options, "-o", source)
            self.check("ftc", "compile", source, f"--strategy={strategy}", "-o", target)
            self.plans[key] = target
        return self.plans[key]

    def train(self, plan, world, *options, steps=20, data=None):
        """Trains under ftrun; returns the metrics of all steps."""
        out = self.dir / "metrics.jsonl"
        out.unlink(missing_ok=True)
        self.check("ftrun", f"--nproc-per-node={world}", "--standalone", BIN / "ftexec", plan, f"--data={data or self.text}",
                   f"--steps={steps}", f"--metrics={out}", "--progress=off", *options)
        rows = metrics(out)
        self.assertEqual([row["step"] for row in rows], list(range(steps)))
        return rows

    def explain(self, plan, world, *options):
        return json.loads(self.check("ftc", "explain", plan, f"--world-size={world}", "--json", *options).stdout)
