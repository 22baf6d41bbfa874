"""What a check on a GPU runs: programs and plans, from a build with the compiler or from a bundle made by one."""
import json
import pathlib
import shutil
import subprocess

ROOT = pathlib.Path(__file__).resolve().parents[2]
HERE = pathlib.Path(__file__).resolve().parent
PRESETS = ("gpt2", "llama", "free_transformer", "baseline")
STRATEGIES = ("no_shard", "zero1", "shard_grad_op", "full_shard", "hybrid_shard", "hybrid_shard_zero2")
PRECISIONS = {"fp32": (), "bf16": ("--mixed-precision=bf16",)}

# name: model and preset, batch, tokens, tokens per second that the issue of this backend names for an H100 or H200
WORKLOADS = {
    "gpt2-124m": dict(model=("gpt2", "124m"), batch=64, seq=1024, floor=460e3),
    "gpt2-1.5b": dict(model=("gpt2", "1.5b"), batch=16, seq=1024, floor=47e3),
    "qwen2.5-1.5b": dict(model=("llama", "qwen2.5-1.5b"), batch=32, seq=1024, floor=59e3),
}
# From the most memory to the least: the first whose arena fits is taken.
RECOMPUTATIONS = ("none", "ops:norms,mlp", "full")


def plan_names():
    """Name of every plan, and what makes it: arguments of `ftc model` and of `ftc compile`."""
    plans = {}
    for preset in PRESETS:
        for precision, options in PRECISIONS.items():
            plans[f"{preset}-{precision}-full_shard"] = ((preset,), ("--strategy=full_shard", *options))
    for strategy in STRATEGIES:
        plans[f"gpt2-bf16-{strategy}"] = (("gpt2",), (f"--strategy={strategy}", *PRECISIONS["bf16"]))
        plans[f"gpt2-fp32-{strategy}"] = (("gpt2",), (f"--strategy={strategy}",))
    for name, workload in WORKLOADS.items():
        model, preset = workload["model"]
        source = (model, f"--preset={preset}", f"--batch={workload['batch']}", f"--seq={workload['seq']}")
        for remat in RECOMPUTATIONS:
            plans[f"bench-{name}-{remat.split(':')[0]}"] = (source, ("--strategy=no_shard", "--target=h200",
                                                                     f"--remat={remat}", *PRECISIONS["bf16"]))
    return plans


def run(command, **kwargs):
    return subprocess.run([str(word) for word in command], check=True, capture_output=True, text=True, **kwargs)


class Artifacts:
    """Programs, and plans by name, each with what `ftc explain --device=cuda --json` says of it for one rank."""

    def __init__(self, folder):
        self.folder = pathlib.Path(folder)
        index = self.folder / "plans.json"
        self.explained = json.loads(index.read_text()) if index.exists() else {}

    def program(self, name):
        path = self.folder / name
        if not path.exists():
            raise SystemExit(f"check: '{path}' is missing; build first, or give the folder of a bundle with --bundle")
        return path

    def plan(self, name):
        return self.program(f"{name}.bin")


def build_portable(build):
    """The programs as single files that need only the C library, for a machine where nothing of ours is installed."""
    targets = ("ftexec", "ftrun", "ft_gpu_conformance_test")
    run(["cmake", "-S", ROOT, "-B", build, "-G", "Ninja", "-DFT_COMPILER=OFF", "-DFT_STATIC=ON", "-DFT_CUDA=on"])
    run(["ninja", "-C", build, *targets])
    return build


def make(folder, build, portable=None):
    """Compiles all plans into `folder` with the ftc of `build`, and puts the programs of `portable` or `build` beside them."""
    folder, binaries, programs = pathlib.Path(folder), build / "bin", portable or build
    folder.mkdir(parents=True, exist_ok=True)
    for program in (programs / "bin/ftexec", programs / "bin/ftrun", programs / "test/ft_gpu_conformance_test"):
        shutil.copy2(program, folder / program.name)
    explained = {}
    for name, (model, options) in plan_names().items():
        source = folder / "model.mlir"
        run([binaries / "ftc", "model", *model, "-o", source])
        run([binaries / "ftc", "compile", source, *options, "-o", folder / f"{name}.bin"])
        text = run([binaries / "ftc", "explain", folder / f"{name}.bin", "--device=cuda", "--json"]).stdout
        explained[name] = json.loads(text)
        source.unlink()
    (folder / "plans.json").write_text(json.dumps(explained))
    return Artifacts(folder)
