"""Trains a model of torch_models.py on one GPU and writes one JSON object: seconds of each step, losses, peak memory.

    torch_worker.py MODEL --variant=eager|compile --batch=B --seq=T --steps=N --data=tokens.bin --out=FILE

Precision as in our bf16 plans: fp32 weights and AdamW (fused), forward and backward in bf16 by autocast, clipping at 1.
"""
import argparse
import json
import pathlib
import subprocess
import time

import numpy
import torch

import torch_models


def batches(path, batch, seq, device):
    """Sequences as they come, in llm.c's format, as ftexec takes them with --shuffle=off."""
    tokens = numpy.fromfile(path, dtype=numpy.uint16, offset=1024).astype(numpy.int64)
    count = (len(tokens) - 1) // seq
    step = 0
    while True:
        rows = [(step * batch + i) % count * seq for i in range(batch)]
        chunk = torch.from_numpy(numpy.stack([tokens[row:row + seq + 1] for row in rows])).to(device)
        yield chunk[:, :-1].contiguous(), chunk[:, 1:].contiguous()
        step += 1


def used_by_process():
    """Bytes of device memory that this process holds, context and libraries included; None where that is not told."""
    query = ["nvidia-smi", "--query-compute-apps=used_memory", "--format=csv,noheader,nounits"]
    try:
        rows = subprocess.run(query, capture_output=True, text=True, timeout=20, check=True).stdout.split()
        return max(int(row) for row in rows) * 2**20 if rows else None
    except (OSError, ValueError, subprocess.SubprocessError):
        return None


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", choices=sorted(torch_models.SHAPES))
    parser.add_argument("--variant", choices=["eager", "compile"], required=True)
    for flag, value in (("batch", 4), ("seq", 64), ("steps", 10)):
        parser.add_argument(f"--{flag}", type=int, default=value)
    parser.add_argument("--data", required=True)
    parser.add_argument("--out", required=True)
    args = parser.parse_args()
    torch.manual_seed(42)
    torch.backends.cuda.matmul.allow_tf32 = True  # what stays in fp32 may use it: the peer at its fastest
    model = torch_models.build(args.model).cuda()
    decay = [p for p in model.parameters() if p.dim() > 1]
    rest = [p for p in model.parameters() if p.dim() <= 1]
    optimizer = torch.optim.AdamW([{"params": decay, "weight_decay": 0.1}, {"params": rest, "weight_decay": 0.0}],
                                  lr=3e-4, betas=(0.9, 0.95), eps=1e-8, fused=True)
    step = torch.compile(model) if args.variant == "compile" else model
    source = batches(args.data, args.batch, args.seq, "cuda")
    seconds, losses = [], []
    for _ in range(args.steps):
        tokens, targets = next(source)
        torch.cuda.synchronize()
        begin = time.monotonic()
        with torch.autocast("cuda", dtype=torch.bfloat16):
            loss = step(tokens, targets)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0, foreach=True)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        losses.append(loss.item())
        torch.cuda.synchronize()
        seconds.append(time.monotonic() - begin)
    pathlib.Path(args.out).write_text(json.dumps({
        "torch": torch.__version__, "seconds": seconds, "losses": losses,
        "peak_allocated": torch.cuda.max_memory_allocated(), "peak_reserved": torch.cuda.max_memory_reserved(),
        "used_by_process": used_by_process()}))


if __name__ == "__main__":
    main()
