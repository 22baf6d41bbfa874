"""What the tests of resumed runs share: tiny models, runs with checkpoints, and what lies in these, byte by byte."""

import json
import os
import re
import shutil
import struct

from harness import BIN, EndToEnd, metrics, run

SEQ = 16
SIZES = ("--layers=2", "--hidden=16", "--heads=2", f"--seq={SEQ}")
TINY = {
    "gpt2": SIZES,
    "llama": (*SIZES, "--kv-heads=2", "--ffn=32"),
    "free_transformer": (*SIZES, "--kv-heads=2", "--ffn=32", "--latent-bits=4"),
}
# What two runs of the same steps may differ in: the time that they took.
TIMES = ("step_ms", "tokens_per_s", "samples_per_s", "exposed_ms", "mfu", "utilization", "save_stall_ms", "save_s", "save_bytes",
         "compute_step", "compute_ms_min", "compute_ms_mean", "compute_ms_max", "slowest_rank")
# More of everything, for hours when nobody waits.
THOROUGH = os.environ.get("FT_TEST_THOROUGH", "") not in ("", "0")


def timeless(rows):
    return [{key: value for key, value in row.items() if key not in TIMES} for row in rows]


def step_of(path):
    return int(path.name.removeprefix("step-"))


def checkpoints(folder):
    """Step -> folder."""
    return {step_of(path): path for path in sorted(folder.glob("step-*"))}


def manifest(checkpoint):
    return json.loads((checkpoint / "manifest.json").read_text())


def tensors(checkpoint):
    """Name -> (dtype, shape, bytes) of a checkpoint of type full, read by nothing of ours."""
    found = {}
    for path in sorted(checkpoint.glob("*.safetensors")):
        raw = path.read_bytes()
        (length,) = struct.unpack("<Q", raw[:8])
        for name, entry in json.loads(raw[8:8 + length]).items():
            if name == "__metadata__":
                continue
            if name in found:
                raise AssertionError(f"{name} is there twice")
            begin, end = (8 + length + offset for offset in entry["data_offsets"])
            found[name] = entry["dtype"], tuple(entry["shape"]), raw[begin:end]
    return found


class CheckpointRuns(EndToEnd):
    def tiny(self, model, *compile_options, model_options=("--batch=1",)):
        """Path of a plan of a tiny model; each is made once per class."""
        stem = re.sub("[^a-zA-Z0-9]+", "_", "-".join((model, *model_options)))
        source = self.shared / f"{stem}.mlir"
        if not source.exists():
            given = {option.split("=")[0]: option for option in (*TINY[model], *model_options)}
            self.check("ftc", "model", model, *given.values(), "-o", source)
        key = (stem, *compile_options)
        if key not in self.plans:
            self.plans[key] = self.shared / f"plan{len(self.plans)}.bin"
            self.check("ftc", "compile", source, *compile_options, "-o", self.plans[key])
        return self.plans[key]

    def command(self, plan, world, *options, data=None):
        launcher = ["ftrun", f"--nproc-per-node={world}", "--standalone", BIN / "ftexec"] if world > 1 else ["ftexec"]
        return [*launcher, plan, f"--data={data or self.text}", "--progress=off", "--threads=1", *options]

    def attempt(self, plan, world, *options, data=None):
        """The finished process, whatever became of it."""
        return run(*self.command(plan, world, *options, data=data))

    def go(self, plan, world, *options, data=None):
        """A run that must succeed."""
        return self.check(*self.command(plan, world, *options, data=data))

    def refused(self, plan, world, *options, data=None, status=65):
        """The line of a run that must not begin: one rank says it for all."""
        done = self.attempt(plan, world, *options, data=data)
        lines = [line.partition("ftexec: ")[2] for line in done.stderr.splitlines() if "ftexec: " in line]
        self.assertEqual((done.returncode, len(lines)), (status, 1), f"{done.stdout}\n{done.stderr}")
        return lines[0]

    def cut(self, folder, step):
        """As if the run had been killed before it wrote any checkpoint later than that of `step`."""
        there = checkpoints(folder)
        self.assertIn(step, there)
        for later, path in there.items():
            if later > step:
                shutil.rmtree(path)

    def rows(self, path):
        return timeless(metrics(path))
