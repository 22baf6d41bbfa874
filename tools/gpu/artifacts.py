"""What a check on a GPU runs: programs and plans, from a build with the compiler or from a bundle made by one."""
import concurrent.futures
import json
import pathlib
import shutil
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent  # no meaning in a bundle
PROGRAMS = ("bin/ftexec", "bin/ftrun", "test/ft_gpu_conformance_test")
NCCL = "nccl"  # folder in a bundle
# Options of `ftc model` beside the family.
PRESETS = {"gpt2": (), "llama": (), "free_transformer": (), "baseline": (), "qwen3": (), "gemma2": (), "gemma3": (), "mixtral": (),
           "qwen3_moe": ("--routing=grouped",), "vit": (), "bert": (), "bert_classifier": ()}
# cuDNN is not asked to cap scores, nor for lengths of keys; in fp32 our own kernel computes all attention.
OWN_ATTENTION = ("gemma2", "bert", "bert_classifier")
OTHER_INPUTS = ("vit", "bert", "bert_classifier")  # than tokens of a text
# Where GPUs are emulated: every way in which a preset is tried.
EMULATED_PRESETS = ("gpt2", "llama", "free_transformer", "baseline", "bert_classifier")
STRATEGIES = ("no_shard", "zero1", "shard_grad_op", "full_shard", "hybrid_shard", "hybrid_shard_zero2")
PRECISIONS = {"fp32": (), "bf16": ("--mixed-precision=bf16",)}

# name: model and preset, batch, tokens; models.py says how fast they have to be
WORKLOADS = {
    "gpt2-124m": dict(model=("gpt2", "124m"), batch=64, seq=1024),
    "gpt2-1.5b": dict(model=("gpt2", "1.5b"), batch=16, seq=1024),
    "qwen2.5-1.5b": dict(model=("llama", "qwen2.5-1.5b"), batch=32, seq=1024),
}
# In their place where GPUs are emulated.
SMALL_WORKLOADS = {
    "gpt2-debug": dict(model=("gpt2", "debug"), batch=2, seq=16),
    "llama-debug": dict(model=("llama", "debug"), batch=2, seq=16),
}
# From the most memory to the least, for 141, 80 and 40 GB: the first whose arena fits is taken.
RECOMPUTATIONS = ("none", "budget:74GiB", "budget:36GiB", "full")


def presets(context):
    return EMULATED_PRESETS if context.emulated else tuple(PRESETS)


def workloads(context):
    return SMALL_WORKLOADS if context.emulated else WORKLOADS


def bench_plan(workload, remat):
    return f"bench-{workload}-{remat.replace(':', '-')}"


def plans_of_presets():
    """Every strategy of one, one strategy of every."""
    plans = {}
    for strategy in STRATEGIES:
        for precision, options in PRECISIONS.items():
            plans[f"gpt2-{precision}-{strategy}"] = (("gpt2",), (f"--strategy={strategy}", *options))
    for preset, others in PRESETS.items():
        for precision, options in PRECISIONS.items():
            plans[f"{preset}-{precision}-full_shard"] = ((preset, *others), ("--strategy=full_shard", *options))
    return plans


def plans_of_workloads():
    plans = {}
    for remat in RECOMPUTATIONS:
        for name, workload in {**WORKLOADS, **SMALL_WORKLOADS}.items():
            model, preset = workload["model"]
            source = (model, f"--preset={preset}", f"--batch={workload['batch']}", f"--seq={workload['seq']}")
            plans[bench_plan(name, remat)] = (source, ("--strategy=no_shard", "--target=h200", f"--remat={remat}",
                                                       *PRECISIONS["bf16"]))
    return plans


def plans_of(parts):
    """Name of every plan they need, and what makes it: arguments of `ftc model` and of `ftc compile`."""
    return {name: arguments for part in parts for name, arguments in part.plans().items()}


def run(command):
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, errors="replace", check=False)
    if done.returncode:
        last = (done.stderr.strip() or done.stdout.strip() or "nothing said").splitlines()[-1]
        raise RuntimeError(f"{pathlib.Path(command[0]).name} {command[1]}: {last}")
    return done.stdout


def compile_plan(ftc, folder, name, model, options):
    """Writes NAME.bin; returns the bytes that `ftc explain --device=cuda` announces for one rank."""
    source, plan = folder / f"{name}.mlir", folder / f"{name}.bin"
    run([ftc, "model", *model, "-o", source])
    run([ftc, "compile", source, *options, "-o", plan])
    source.unlink()
    return json.loads(run([ftc, "explain", plan, "--device=cuda", "--json"]))["arena_bytes"]


def write_examples(folder, preset):
    """Examples of a preset that takes other inputs than tokens."""
    path = folder / f"{preset}.safetensors"
    run([sys.executable, "-B", ROOT / "test/golden/weights.py", preset, "--data", "-o", path])
    return path


class Bundle:
    """Programs and plans of a folder that --make-bundle has written."""

    def __init__(self, folder):
        self.folder = pathlib.Path(folder)
        self.announced = json.loads((self.folder / "plans.json").read_text())
        self.text = self.folder / "text.txt"

    def program(self, name):
        return self.folder / name

    def plan(self, name):
        return self.folder / f"{name}.bin"

    def arena_bytes(self, name):
        return self.announced[name]

    def data(self, preset):
        return self.folder / f"{preset}.safetensors" if preset in OTHER_INPUTS else self.text

    def nccl(self):
        """The folder of the bundle's own NCCL, or None."""
        return self.folder / NCCL if (self.folder / NCCL).exists() else None

    def close(self):
        pass


class Build:
    """Programs of a build, and plans that its compiler writes into `folder` while the first of them are used already."""

    def __init__(self, build, folder, plans, programs=PROGRAMS):
        self.build, self.folder, self.text = pathlib.Path(build), pathlib.Path(folder), ROOT / "LICENSE"
        self.programs = programs
        missing = [path for path in (*programs, "bin/ftc") if not (self.build / path).exists()]
        if missing:
            raise SystemExit(f"check: '{self.build / missing[0]}' is missing; run make, or name a build by --build")
        self.folder.mkdir(parents=True, exist_ok=True)
        self.pool = concurrent.futures.ThreadPoolExecutor()
        self.compiled = {name: self.pool.submit(compile_plan, self.build / "bin/ftc", self.folder, name, model, options)
                         for name, (model, options) in plans.items()}
        self.examples = {preset: self.pool.submit(write_examples, self.folder, preset) for preset in OTHER_INPUTS}

    def data(self, preset):
        """What a debug preset trains on."""
        return self.examples[preset].result() if preset in OTHER_INPUTS else self.text

    def program(self, name):
        return next(self.build / path for path in self.programs if path.endswith(name))

    def plan(self, name):
        self.compiled[name].result()
        return self.folder / f"{name}.bin"

    def arena_bytes(self, name):
        return self.compiled[name].result()

    def nccl(self):
        return None

    def close(self):
        self.pool.shutdown(cancel_futures=True)


def programs_of(parts):
    return tuple(dict.fromkeys([*PROGRAMS, *(path for part in parts for path in part.programs)]))
