"""One rank of saving and loading with torch.distributed.checkpoint, for checkpoints.py: GPT-2 under fully_shard, AdamW, Gloo, fp32.

Writes, on rank 0, one JSON object with the seconds of the slowest rank: save, async, stall, load (medians over the saves, the first of
each kind left out).
"""
import argparse
import json
import os
import pathlib
import statistics
import time

import torch
import torch.distributed as dist
import torch.distributed.checkpoint as dcp
from torch.distributed.checkpoint.state_dict import get_state_dict, set_state_dict

import torch_worker


def slowest(seconds):
    value = torch.tensor(seconds)
    dist.all_reduce(value, op=dist.ReduceOp.MAX)
    return value.item()


def state_of(step, optimizer):
    weights, moments = get_state_dict(step, optimizer)
    return {"model": weights, "optimizer": moments}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", type=json.loads, required=True)
    parser.add_argument("--folder", required=True)
    parser.add_argument("--saves", type=int, required=True)
    parser.add_argument("--out", required=True)
    args = parser.parse_args()
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    step, optimizer = torch_worker.build("fully_shard", args.model)
    for parameter in step.parameters():  # AdamW makes its states in its first step
        parameter.grad = torch.randn_like(parameter)  # zeros would be written faster than states that were trained
    optimizer.step()
    seconds = {"save": [], "async": [], "stall": [], "load": []}
    for i in range(args.saves + 1):
        dist.barrier()
        begin = time.monotonic()
        dcp.save(state_of(step, optimizer), checkpoint_id=f"{args.folder}/save-{i % 2}")
        seconds["save"].append(slowest(time.monotonic() - begin))
    for i in range(args.saves + 1):
        dist.barrier()
        begin = time.monotonic()
        future = dcp.async_save(state_of(step, optimizer), checkpoint_id=f"{args.folder}/async-{i % 2}")
        stall = time.monotonic() - begin
        future.result()
        seconds["async"].append(slowest(time.monotonic() - begin))
        seconds["stall"].append(slowest(stall))
    dist.barrier()
    if dist.get_rank() == 0:
        os.sync()
        pathlib.Path("/proc/sys/vm/drop_caches").write_text("3\n")
    dist.barrier()
    begin = time.monotonic()
    state = state_of(step, optimizer)
    dcp.load(state, checkpoint_id=f"{args.folder}/save-0")
    set_state_dict(step, optimizer, model_state_dict=state["model"], optim_state_dict=state["optimizer"])
    load = slowest(time.monotonic() - begin)
    if dist.get_rank() == 0:
        result = {key: statistics.median(values[1:]) for key, values in seconds.items() if values}
        pathlib.Path(args.out).write_text(json.dumps(dict(result, load=load)))
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
