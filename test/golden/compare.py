"""Compares a run of ftexec with a golden file (Python's standard library only).

    compare.py metrics.jsonl golden.json --world=N [--weights=saved.safetensors] [--tolerance=1e-5]

Losses and gradient norms of every step must agree within the relative tolerance, and so must, per parameter, the l2 norm of
the weights after the last step. Exit status 1 with one line for each difference.

With mixed precision two right implementations differ, as they round at different places. A golden file of mixed precision
says how far PyTorch's rounding takes it from its float32 run, d. What rounds as often is as far from there, in another
direction: the tolerance is 2 d, for losses and for gradient norms. The first loss is the same weights rounded: it must be nearer
to PyTorch's than float32's is, d / 2. Loss scales and skipped steps must be the same.
"""
import argparse
import array
import json
import math
import re
import struct
import sys


def read_metrics(path):
    with open(path, encoding="utf-8") as f:
        return [json.loads(line) for line in f if line.strip()]


def read_safetensors(path):
    """name -> array('f'); F32 only, which is what ftexec writes."""
    with open(path, "rb") as f:
        size, = struct.unpack("<Q", f.read(8))
        header, body = json.loads(f.read(size)), f.read()
    tensors = {}
    for name, entry in header.items():
        if name == "__metadata__":
            continue
        if entry["dtype"] != "F32":
            raise SystemExit(f"{path}: {name} is {entry['dtype']}, expected F32")
        begin, end = entry["data_offsets"]
        data = array.array("f")
        data.frombytes(body[begin:end])
        if sys.byteorder == "big":
            data.byteswap()
        tensors[name] = data
    return tensors


def as_in_modules(tensors):
    """Experts of a layer as the modules of transformers have them, one tensor; its files, and ours, have one for each expert and product."""
    joined = {}
    for name, data in tensors.items():
        name = name.replace(".block_sparse_moe.", ".mlp.")
        part = re.fullmatch(r"(.*\.experts)\.\d+\.(\w+)\.weight", name)
        if part:
            name = part[1] + (".down_proj" if part[2] in ("w2", "down_proj") else ".gate_up_proj")
        joined[name] = joined[name] + data if name in joined else data
    return joined


def determined(name, data):
    """The elements whose value means something: softmax does not see the bias of the keys, whose gradient is rounding alone."""
    if name.endswith("key.bias"):
        return data[:0]
    if name.endswith("attn.c_attn.bias"):
        third = len(data) // 3
        return data[:third] + data[2 * third:]
    return data


def differs(ours, golden, tolerance):
    return ours is None or not abs(ours - golden) <= tolerance * abs(golden)  # null: not finite; NaN differs, too


def differs_from(ours, golden, tolerance):
    """The same for what may be not finite in both."""
    return ours is not None if golden is None else differs(ours, golden, tolerance)


def tolerances(golden, key, tolerance):
    """Of each step."""
    distance = golden.get("distance_to_fp32")
    if distance is None:
        return [tolerance] * len(golden[key])
    each = [2 * distance[key]] * len(golden[key])
    if key == "loss":
        each[0] = distance["first_loss"] / 2
    return each


def compare_scaling(metrics, golden):
    """The decisions of loss scaling, which are exact."""
    for m, scale, skipped in zip(metrics, golden["loss_scale"], golden["skipped"]):
        if (m.get("loss_scale", 1.0), m.get("skipped", False)) != (scale, skipped):
            yield (f"step {m['step']}: loss scale {m.get('loss_scale')!r}, skipped {m.get('skipped', False)}; "
                   f"PyTorch has {scale!r}, {skipped}")


def compare_steps(metrics, golden, tolerance):
    if [m["step"] for m in metrics] != list(range(len(golden["loss"]))):
        yield f"steps are {[m['step'] for m in metrics]}, expected 0 .. {len(golden['loss']) - 1}"
        return
    for key in ("loss", "grad_norm"):
        for m, expected, allowed in zip(metrics, golden[key], tolerances(golden, key, tolerance)):
            if differs_from(m[key], expected, allowed):
                off = ("one is not finite" if m[key] is None or expected is None
                       else f"relative difference {abs(m[key] / expected - 1):.2e}, allowed {allowed:.2e}")
                yield f"step {m['step']}: {key} {m[key]!r}, PyTorch has {expected!r}, {off}"


def compare_weights(weights, golden, tolerance):
    if set(weights) != set(golden):
        yield f"parameters differ: {sorted(set(weights) ^ set(golden))}"
        return
    for name, (total, norm) in golden.items():
        data = determined(name, weights[name])
        ours, ours_total = math.sqrt(math.fsum(x * x for x in data)), math.fsum(data)
        if differs(ours, norm, tolerance):
            yield f"{name}: l2 norm {ours!r} after the last step, PyTorch has {norm!r}"
        # A sum cancels: it is compared on the scale of the elements it sums.
        if not abs(ours_total - total) <= tolerance * norm * math.sqrt(len(data)):
            yield f"{name}: sum {ours_total!r} after the last step, PyTorch has {total!r}"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("metrics")
    parser.add_argument("golden")
    parser.add_argument("--world", type=int, required=True)
    parser.add_argument("--weights")
    parser.add_argument("--tolerance", type=float, default=1e-5)
    args = parser.parse_args()
    with open(args.golden, encoding="utf-8") as f:
        golden = json.load(f)["worlds"][str(args.world)]
    metrics = read_metrics(args.metrics)
    problems = list(compare_steps(metrics, golden, args.tolerance))
    if "loss_scale" in golden:
        problems += compare_scaling(metrics, golden)
    if args.weights:
        problems += compare_weights(as_in_modules(read_safetensors(args.weights)), golden["final_weights"], args.tolerance)
    for problem in problems:
        print(problem, file=sys.stderr)
    if not problems:
        worst = {k: max(abs(m[k] - g) / abs(g) for m, g in zip(metrics, golden[k]) if g is not None)
                 for k in ("loss", "grad_norm")}
        print(f"{len(metrics)} steps agree with {args.golden}, worst relative differences: loss {worst['loss']:.1e}, "
              f"gradient norm {worst['grad_norm']:.1e}")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
