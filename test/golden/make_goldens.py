"""Makes the golden files beside it with PyTorch. Run by hand, in the environment that scripts/venv makes:

    build/venv/bin/python test/golden/make_goldens.py [NAME ...] [--check]

Each <model>.json holds, for world sizes 1 and 2, the losses and gradient norms of 20 steps in float32, which is what
we are compared with, and in float64, which tells how far float32 itself is from the truth; and a fingerprint of the
weights after the last step. Each <model>_<precision>.json holds the same of PyTorch's mixed precision, with the loss
scale and whether the step was skipped, and how far that is from float32, which tells how much rounding may matter.
--check writes nothing and fails when what is there differs by more than 1e-6 relative.
"""
import argparse
import json
import pathlib
import sys

import numpy as np
import torch
import transformers

import compare
import mixed_precision
import reference
import weights

HERE = pathlib.Path(__file__).parent
LENGTH, ROWS, STEPS, LR = 64, 4, 20, 1e-3
MIN_MARGIN = 5e-6  # of a sample to its threshold: float32 moves a probability by some 1e-7
# Compute and reduce types; the loss scale is planted so high that the first steps overflow, and grows into overflow again.
MIXED = {"gpt2_bf16": {"param": "bf16", "reduce": "fp32"},
         "gpt2_bf16_reduced": {"param": "bf16", "reduce": "bf16"},
         "gpt2_fp16": {"param": "fp16", "reduce": "fp16", "init_scale": 2.0 ** 20, "growth_interval": 4}}
MIN_OVERFLOW_MARGIN = 0.01  # of the largest element to the largest half: rounding moves it by some 1e-3


def fingerprint(model):
    """Per parameter [sum, l2 norm] of the elements that compare.py looks at, in float64."""
    result = {}
    for name, p in reference.named_parameters(model):
        data = torch.tensor(compare.determined(name, p.detach().double().flatten().tolist()), dtype=torch.float64)
        result[name] = [data.sum().item(), data.norm().item()]
    return result


def run(name, tokens, world, dtype):
    model = reference.load(reference.debug_model(name), name, dtype)
    losses, norms = reference.train(model, tokens, LENGTH, ROWS, world, STEPS, LR)
    return losses, norms, model


def header(model):
    return {"model": model, "preset": "debug", "data": "corpus.txt", "batch": ROWS, "seq": LENGTH, "steps": STEPS,
            "lr": LR, "betas": reference.BETAS, "eps": reference.EPS, "weight_decay": reference.WEIGHT_DECAY,
            "clip": reference.CLIP, "seed": 42, "worlds": {},
            "made_with": f"torch {torch.__version__.split('+')[0]}, transformers {transformers.__version__}"}


def golden(name, tokens):
    result = header(name)
    for world in (1, 2):
        losses, norms, model = run(name, tokens, world, torch.float32)
        exact_losses, exact_norms, exact = run(name, tokens, world, torch.float64)
        own = max(abs(a - b) / abs(b) for a, b in zip(losses + norms, exact_losses + exact_norms))
        print(f"{name} world {world}: loss {losses[0]:.6f} -> {losses[-1]:.6f}, norm {norms[0]:.3f} -> {norms[-1]:.3f}, "
              f"float32 against float64: {own:.2e}", end="")
        if name == "free_transformer":
            margin = min(model.least_margin, exact.least_margin)
            print(f", least margin of a sample {margin:.2e}", end="")
            if margin < MIN_MARGIN:
                raise SystemExit("\na sample lies too close to its threshold: choose another SALT in weights.py")
        print()
        result["worlds"][str(world)] = {"loss": losses, "grad_norm": norms, "loss_f64": exact_losses,
                                        "grad_norm_f64": exact_norms, "final_weights": fingerprint(model)}
    return result


def distance(values, exact):
    """Largest relative difference of what is finite."""
    return max(abs(a - b) / abs(b) for a, b in zip(values, exact) if a is not None)


def mixed_golden(name, tokens):
    case, model = MIXED[name], name.split("_")[0]
    result = header(model) | case
    for world in (1, 2):
        run = mixed_precision.train(model, case, tokens, LENGTH, ROWS, world, STEPS, LR)
        run["grad_norm"] = [norm if np.isfinite(norm) else None for norm in run["grad_norm"]]
        losses, norms, largest = mixed_precision.train_float32(model, run["skipped"], tokens, LENGTH, ROWS, world, LR)
        run["distance_to_fp32"] = {"first_loss": distance(run["loss"][:1], losses), "loss": distance(run["loss"], losses),
                                   "grad_norm": distance(run["grad_norm"], norms)}
        print(f"{name} world {world}: loss {run['loss'][0]:.6f} -> {run['loss'][-1]:.6f}, skipped "
              f"{[i for i, skip in enumerate(run['skipped']) if skip]}, distance to float32 {run['distance_to_fp32']}")
        if "init_scale" in case:
            filled = [most * scale / mixed_precision.LARGEST_HALF for most, scale in zip(largest, run["loss_scale"])]
            if [f > 1 for f in filled] != run["skipped"] or min(abs(f - 1) for f in filled) < MIN_OVERFLOW_MARGIN:
                raise SystemExit(f"a step is too close to overflow: {filled}")
        result["worlds"][str(world)] = run
    # Two estimates of what rounding may do: the larger one holds for both.
    for key in ("loss", "grad_norm"):
        most = max(run["distance_to_fp32"][key] for run in result["worlds"].values())
        for run in result["worlds"].values():
            run["distance_to_fp32"][key] = most
    return result


def differences(old, new, path=""):
    if isinstance(new, dict):
        for key in sorted(set(old) | set(new)):
            if key != "made_with":
                yield from differences(old.get(key), new.get(key), f"{path}/{key}")
    elif isinstance(new, (list, tuple)):
        for i, value in enumerate(new):
            yield from differences(old[i], value, f"{path}[{i}]")
    elif isinstance(new, float):
        if not abs(old - new) <= 1e-6 * max(1.0, abs(new)):
            yield f"{path}: {old!r} in the file, {new!r} now"
    elif old != new:
        yield f"{path}: {old!r} in the file, {new!r} now"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", default=[*weights.SHAPES, *MIXED])
    parser.add_argument("--check", action="store_true")
    args = parser.parse_args()
    torch.set_num_threads(1)
    torch.use_deterministic_algorithms(True)
    tokens = np.frombuffer((HERE / "corpus.txt").read_bytes(), dtype=np.uint8)
    wrong = []
    for name in args.names:
        data = weights.examples(name) if name in weights.INPUTS else tokens
        result = (mixed_golden if name in MIXED else golden)(name, data)
        path = HERE / f"{name}.json"
        if args.check:
            wrong += differences(json.loads(path.read_text()), result, name)
        else:
            path.write_text(json.dumps(result, indent=1) + "\n")
    for line in wrong[:20]:
        print(line, file=sys.stderr)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
