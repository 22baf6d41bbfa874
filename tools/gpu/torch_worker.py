"""Trains a model of torch_models.py and writes one JSON object: seconds of each step, losses, peak memory.

    torch_worker.py MODEL --variant=eager|blocks|compile --batch=B --seq=T --steps=N --data=tokens.bin --out=FILE
        eager     as it is
        blocks    torch.compile of each block, and of the loss
        compile   torch.compile of the whole model

Precision as in our bf16 plans: fp32 weights and AdamW (fused), forward and backward in bf16, clipping at 1. Where memory does not
suffice, logits are made chunk by chunk, and if that does not suffice, blocks are recomputed; "keep" says what was done.
"""
import argparse
import array
import gc
import json
import pathlib
import sys
import time
import traceback

import torch

import torch_models


def batches(path, batch, seq, device):
    """Sequences as they come, in llm.c's format, as ftexec takes them with --shuffle=off."""
    tokens = torch.tensor(array.array("H", pathlib.Path(path).read_bytes()[1024:]), dtype=torch.int64)
    count = (len(tokens) - 1) // seq
    step = 0
    while True:
        rows = [(step * batch + i) % count * seq for i in range(batch)]
        chunk = torch.stack([tokens[row:row + seq + 1] for row in rows]).to(device)
        yield chunk[:, :-1].contiguous(), chunk[:, 1:].contiguous()
        step += 1


def optimizer_of(model, device):
    decay = [p for p in model.parameters() if p.dim() > 1]
    rest = [p for p in model.parameters() if p.dim() <= 1]
    return torch.optim.AdamW([{"params": decay, "weight_decay": 0.1}, {"params": rest, "weight_decay": 0.0}],
                             lr=3e-4, betas=(0.9, 0.95), eps=1e-8, fused=device == "cuda")


def compiled(model, variant):
    if variant == "compile":
        return torch.compile(model)
    if variant == "blocks":
        model.compile_parts()
    return model


def train(args, keep):
    synchronize = torch.cuda.synchronize if args.device == "cuda" else lambda: None
    half = args.precision == "bf16"
    model = torch_models.build(args.model, args.device, torch.bfloat16 if half else torch.float32, keep)
    if args.weights:
        model.load_state_dict(torch.load(args.weights))
    optimizer, step = optimizer_of(model, args.device), compiled(model, args.variant)
    source = batches(args.data, args.batch, args.seq, args.device)
    seconds, losses = [], []
    for _ in range(args.steps):
        tokens, targets = next(source)
        synchronize()
        begin = time.monotonic()
        with torch.autocast(args.device, dtype=torch.bfloat16, enabled=half):
            loss = step(tokens, targets)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0, foreach=True)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        losses.append(loss.item())
        synchronize()
        seconds.append(time.monotonic() - begin)
    return {"torch": torch.__version__, "keep": keep, "seconds": seconds, "losses": losses,
            "parameters": sum(p.numel() for p in model.parameters()), **memory(args.device)}


def memory(device):
    """Bytes: what tensors took at the peak, what the allocator took for them, what the device lacks now, libraries included."""
    if device != "cuda":
        return {}
    free, total = torch.cuda.mem_get_info()
    return {"allocated_bytes": torch.cuda.max_memory_allocated(), "reserved_bytes": torch.cuda.max_memory_reserved(),
            "device_bytes": total - free}


def train_with_what_fits(args):
    for keep in torch_models.KEEP:
        try:
            return train(args, keep)
        except Exception as error:  # compilation wraps what it meets
            if "out of memory" not in str(error) or keep == torch_models.KEEP[-1]:
                raise
        # Not in the handler: the error holds on to all that was allocated.
        torch.compiler.reset()
        gc.collect()
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats()


def parse():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", choices=sorted(torch_models.SHAPES))
    parser.add_argument("--variant", choices=["eager", "blocks", "compile"], required=True)
    for flag, value in (("batch", 4), ("seq", 64), ("steps", 10)):
        parser.add_argument(f"--{flag}", type=int, default=value)
    parser.add_argument("--device", choices=["cuda", "cpu"], default="cuda")
    parser.add_argument("--precision", choices=["bf16", "fp32"], default="bf16")
    parser.add_argument("--weights", help="a state_dict to start from")
    parser.add_argument("--data", required=True)
    parser.add_argument("--out", required=True)
    return parser.parse_args()


def main():
    args = parse()
    torch.manual_seed(42)
    torch.set_float32_matmul_precision("high")  # what stays in fp32 may use TF32: the peer at its fastest
    try:
        result = train_with_what_fits(args)
    except Exception as error:
        traceback.print_exc()
        first = next((line for line in str(error).splitlines() if line.strip()), "")
        sys.exit(f"{type(error).__name__}: {first}")
    pathlib.Path(args.out).write_text(json.dumps(result))


if __name__ == "__main__":
    main()
