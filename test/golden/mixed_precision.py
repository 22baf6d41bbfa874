"""Mixed precision as PyTorch does it: fully_shard with a MixedPrecisionPolicy on CPU ranks, and torch.amp.GradScaler.

Master weights, moments and the optimizer are float32; parameters are gathered in the compute type, gradients reduced in
another, the loss is taken over float32 logits. `train` is the reference; `train_float32` is the same run without rounding.
"""
import os
import socket
import tempfile

import torch
import torch.distributed as dist
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard
from torch.nn import functional as F

import reference

TYPES = {"fp32": torch.float32, "bf16": torch.bfloat16, "fp16": torch.float16}
LARGEST_HALF = 65504.0


def shard(model, world, case):
    mesh = init_device_mesh("cpu", (world,))
    policy = MixedPrecisionPolicy(param_dtype=TYPES[case["param"]], reduce_dtype=TYPES[case["reduce"]])
    for block in model.hf.transformer.h:
        fully_shard(block, mesh=mesh, mp_policy=policy)
    fully_shard(model.hf, mesh=mesh, mp_policy=policy)


def whole(value):
    return value.full_tensor() if hasattr(value, "full_tensor") else value


def one_step(model, optimizer, scaler, tokens, targets, clip):
    """Loss of this rank and the gradient norm before clipping."""
    optimizer.zero_grad()
    logits = model.hf(input_ids=tokens, use_cache=False).logits
    loss = F.cross_entropy(logits.float().flatten(0, 1), targets.flatten())
    scaler.scale(loss).backward()
    scaler.unscale_(optimizer)
    norm = whole(torch.nn.utils.clip_grad_norm_(model.parameters(), clip))
    scaler.step(optimizer)
    scaler.update()
    return loss.detach(), norm.item()


def run_rank(rank, world, name, case, tokens, length, rows, steps, lr, port, path):
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port))
    torch.set_num_threads(1)
    torch.use_deterministic_algorithms(True)
    dist.init_process_group("gloo", rank=rank, world_size=world)
    model = reference.load(reference.debug_model(name), name)
    shard(model, world, case)
    optimizer = reference.adamw(model, lr)
    scaler = torch.amp.GradScaler("cpu", enabled="init_scale" in case, init_scale=case.get("init_scale", 1.0),
                                  growth_interval=case.get("growth_interval", 1))
    result = {"loss": [], "grad_norm": [], "loss_scale": [], "skipped": []}
    for step in range(steps):
        scale = scaler.get_scale()
        batch = reference.batch(tokens, length, rows, rank, world, step)
        loss, norm = one_step(model, optimizer, scaler, *batch, reference.CLIP)
        dist.all_reduce(loss)
        result["loss"].append(loss.item() / world)
        result["grad_norm"].append(norm)
        result["loss_scale"].append(scale)
        result["skipped"].append(scaler.get_scale() < scale)
    if rank == 0:
        torch.save(result, path)
    dist.destroy_process_group()


def train(name, case, tokens, length, rows, world, steps, lr):
    """Losses, gradient norms, loss scales and skipped steps of a job of `world` ranks."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "result")
        torch.multiprocessing.spawn(run_rank, nprocs=world,
                                    args=(world, name, case, tokens, length, rows, steps, lr, port, path))
        return torch.load(path)


def train_float32(name, skipped, tokens, length, rows, world, lr):
    """Losses and gradient norms without rounding, the same steps skipped; and of each step the largest element of a rank's
    own gradient, which overflows first.
    """
    model = reference.load(reference.debug_model(name), name)
    optimizer = reference.adamw(model, lr)
    parameters = list(model.parameters())
    losses, norms, largest = [], [], []
    for step, skip in enumerate(skipped):
        optimizer.zero_grad()
        total, most = 0.0, 0.0
        for rank in range(world):
            loss = model.loss(*reference.batch(tokens, length, rows, rank, world, step))
            total += loss.item() / world
            for p, own in zip(parameters, torch.autograd.grad(loss, parameters)):
                most = max(most, own.abs().max().item())
                p.grad = own / world if p.grad is None else p.grad + own / world
        largest.append(most)
        norms.append(torch.nn.utils.clip_grad_norm_(model.parameters(), reference.CLIP).item())
        losses.append(total)
        if not skip:
            optimizer.step()
    return losses, norms, largest
