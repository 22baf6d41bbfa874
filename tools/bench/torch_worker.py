"""One rank of a PyTorch training run, for run.py: Hugging Face's GPT-2 or Llama, AdamW with clipping, on the CPU, in float32 unless said.

Variants: eager          AdamW as torch.optim makes it by default
          eager-fused    AdamW(fused=True), the fastest one there is
          compile        torch.compile of forward and loss, AdamW(fused=True)
          compile-bf16   the same under torch.autocast of bf16: parameters, gradients and optimizer in float32, as ours
          fully_shard    torch.distributed.fsdp.fully_shard over the blocks and the root, Gloo, AdamW by default
          ddp            DistributedDataParallel, Gloo
Writes one JSON object: the clock (CLOCK_MONOTONIC) at the end of every step, the losses, what ran.
"""
import argparse
import json
import os
import pathlib
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "test" / "golden"))

import numpy as np
import torch
import torch.distributed as dist

import reference

class Step(torch.nn.Module):
    def __init__(self, model, bf16):
        super().__init__()
        self.model, self.bf16 = model, bf16

    def forward(self, tokens, targets):
        with torch.autocast("cpu", dtype=torch.bfloat16, enabled=self.bf16):
            return self.model.loss(tokens, targets)


def build(variant, model):
    """The module to call, and the AdamW that trains it. `model`: its family and the dimensions that reference.py wants."""
    torch.manual_seed(42)
    make = {"gpt2": reference.gpt2, "llama": reference.llama}[model["family"]]
    dimensions = {key: value for key, value in model.items() if key != "family"}
    step = Step(reference.CausalLM(make(**dimensions, attention="sdpa")), variant.endswith("-bf16")).train()
    if variant == "fully_shard":
        from torch.distributed.device_mesh import init_device_mesh
        from torch.distributed.fsdp import fully_shard
        mesh = init_device_mesh("cpu", (dist.get_world_size(),))
        for block in step.model.hf.transformer.h:
            fully_shard(block, mesh=mesh)
        fully_shard(step, mesh=mesh)
    options = {"fused": True} if variant in ("eager-fused", "compile", "compile-bf16") else {}
    optimizer = reference.adamw(step, 3e-4, **options)
    if variant in ("compile", "compile-bf16"):
        step = torch.compile(step)
    elif variant == "ddp":
        step = torch.nn.parallel.DistributedDataParallel(step)
    return step, optimizer


def read_tokens(path):
    """llm.c's format: 256 int32 of header, then uint16 tokens."""
    return np.fromfile(path, dtype=np.uint16, offset=1024)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--variant", required=True, choices=["eager", "eager-fused", "compile", "compile-bf16", "fully_shard", "ddp"])
    parser.add_argument("--model", type=json.loads, required=True, help='{"family": "gpt2", "hidden": 768, ...}')
    for flag, value in (("batch", 4), ("seq", 64), ("steps", 10), ("threads", 1)):
        parser.add_argument(f"--{flag}", type=int, default=value)
    parser.add_argument("--data", required=True)
    parser.add_argument("--out", required=True)
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    rank, world = int(os.environ.get("RANK", 0)), int(os.environ.get("WORLD_SIZE", 1))
    if world > 1:
        dist.init_process_group("gloo")
    step, optimizer = build(args.variant, args.model)
    tokens = read_tokens(args.data)
    ends, losses = [], []
    for i in range(args.steps):
        begin = time.monotonic()
        loss = step(*reference.batch(tokens, args.seq, args.batch, rank, world, i))
        loss.backward()
        torch.nn.utils.clip_grad_norm_(step.parameters(), reference.CLIP)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        losses.append(loss.item())
        ends.append([begin, time.monotonic()])
    result = {"variant": args.variant, "torch": torch.__version__, "threads": torch.get_num_threads(),
              "steps": ends, "losses": losses}
    pathlib.Path(args.out).write_text(json.dumps(result))
    if world > 1:
        dist.destroy_process_group()


if __name__ == "__main__":
    main()
