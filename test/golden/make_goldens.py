"""Makes the golden files beside it with PyTorch. Run by hand, in the environment that scripts/venv makes:

    build/venv/bin/python test/golden/make_goldens.py [MODEL ...] [--check]

Each <model>.json holds, for world sizes 1 and 2, the losses and gradient norms of 20 steps in float32, which is what
we are compared with, and in float64, which tells how far float32 itself is from the truth; and a fingerprint of the
weights after the last step. --check writes nothing and fails when what is there differs by more than 1e-6 relative.
"""
import argparse
import json
import pathlib
import sys

import numpy as np
import torch
import transformers

import compare
import reference
import weights

HERE = pathlib.Path(__file__).parent
LENGTH, ROWS, STEPS, LR = 64, 4, 20, 1e-3
MIN_MARGIN = 5e-6  # of a sample to its threshold: float32 moves a probability by some 1e-7


def fingerprint(model):
    """Per parameter [sum, l2 norm] of the elements that compare.py looks at, in float64."""
    result = {}
    for name, p in reference.inner(model).named_parameters():
        data = torch.tensor(compare.determined(name, p.detach().double().flatten().tolist()), dtype=torch.float64)
        result[name] = [data.sum().item(), data.norm().item()]
    return result


def run(name, tokens, world, dtype):
    model = reference.load(reference.debug_model(name), name, dtype)
    losses, norms = reference.train(model, tokens, LENGTH, ROWS, world, STEPS, LR)
    return losses, norms, model


def golden(name, tokens):
    result = {"model": name, "preset": "debug", "data": "corpus.txt", "batch": ROWS, "seq": LENGTH, "steps": STEPS,
              "lr": LR, "betas": reference.BETAS, "eps": reference.EPS, "weight_decay": reference.WEIGHT_DECAY,
              "clip": reference.CLIP, "seed": 42, "worlds": {},
              "made_with": f"torch {torch.__version__.split('+')[0]}, transformers {transformers.__version__}"}
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
    parser.add_argument("models", nargs="*", default=list(weights.SHAPES))
    parser.add_argument("--check", action="store_true")
    args = parser.parse_args()
    torch.set_num_threads(1)
    torch.use_deterministic_algorithms(True)
    tokens = np.frombuffer((HERE / "corpus.txt").read_bytes(), dtype=np.uint8)
    wrong = []
    for name in args.models:
        result = golden(name, tokens)
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
