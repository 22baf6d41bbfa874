"""What can be seen of collectives on one GPU: one rank over NCCL itself, and two ranks that share the GPU, which NCCL allows
from 2.30 on. Alone on the machine: kernels of two processes take turns there."""
import contextlib
import dataclasses
import os
import re
import signal
import socket
import subprocess
import time

import artifacts
import machine
import runner
import training
from part import Part
from runner import Failed, OutOfTime, Skipped, attempt, execute
from shapes import ASKED, run_asked

ONE_RANK = ("Init", "Split", "RegisteredMemory", "Window", "Capture", "Abort")
# Few blocks for each collective, so that those of two ranks find room beside each other.
MAX_CTAS = "4"
SECONDS_TO_END = 20
SECONDS_FOR_MEMORY = 10  # in which the driver gives back what a process had
# That a collective may take: a device that does not let go of it ends with the process 15 seconds later, and steps on an
# emulated GPU take seconds.
TIMEOUT, EMULATED_TIMEOUT = 4, 8
PLAN = "gpt2-bf16-full_shard"
RECORDED = 5  # steps after which one is replayed: the second is recorded
# Nothing of it happens on one GPU.
OPEN = ("NVLS (sums in the switch)", "memory registered over NVLink", "networks between nodes")
CANNOT_SHARE = r"NCCL|[Dd]uplicate|exclusive|libnccl"


def shared(context):
    """The context with one GPU, which ranks may share."""
    visible = context.environment.get("CUDA_VISIBLE_DEVICES", "").split(",")[0] or "0"
    env = {**context.environment, "NCCL_MULTI_RANK_GPU_ENABLE": "1", "NCCL_MAX_CTAS": MAX_CTAS, "CUDA_VISIBLE_DEVICES": visible}
    if context.emulated:
        env["FT_EMULATED_MACHINE"] = "devices=1,nccl=23000"  # the first that lets them
    return dataclasses.replace(context, environment=env, gpus=context.gpus[:1])


def one_rank(context):
    for name in ONE_RANK:
        def run():
            text = run_asked(context, f"DISABLED_OneRankNccl.{name}")
            version = re.search(r"NCCL [\d.]+", text)
            return f"{version[0] if version else 'NCCL'}{' (emulated)' if context.emulated else ''}"
        yield attempt(context, f"one rank over NCCL: {name}", run)


def two_ranks(context):
    @runner.once
    def against_cpu():
        plan = "gpt2-fp32-no_shard"
        try:
            rows = training.train(context, plan, "cuda", world=2)
        except Failed as error:
            if re.search(CANNOT_SHARE, str(error) + error.output):
                raise Skipped(f"two ranks cannot share this GPU: {error}") from error
            raise
        return training.check_fp32(rows, training.train(context, plan, "cpu", world=2))

    def only_if_shared(action):
        def run():
            against_cpu()
            return action()
        return run

    def sums():
        text = execute(context, [context.made.program("ftrun"), "--nproc-per-node=2", "--standalone",
                                 context.made.program("ft_gpu_conformance_test"), ASKED,
                                 "--gtest_filter=*DISABLED_RanksNccl*"])
        passed = len(re.findall(r"\[\s+OK \] ", text))
        if passed == 0 or "SKIPPED" in text:
            raise Failed(f"{passed} tests passed on two ranks, others were skipped", text)
        return "f32, bf16 and f16, enqueued and replayed"

    yield attempt(context, "two ranks on one GPU against ranks on CPUs", against_cpu)
    yield attempt(context, "sums of two ranks have the bits of sums on CPUs", only_if_shared(sums))
    for number, what in ((signal.SIGKILL, "killed (KILL)"), (signal.SIGSTOP, "stopped (STOP)")):
        yield from lost_rank(context, number, what, only_if_shared)


# A rank that is lost


class Ranks:
    """Two ranks without a launcher, which would end the other one itself; under way when they are made."""

    def __init__(self, context):
        self.context, self.metrics = context, context.file(".jsonl")
        self.logs, self.processes = [context.file(".log") for _ in range(2)], []
        try:
            port = free_port()
            for rank in range(2):
                self.processes.append(self.start(rank, port))
            self.await_steps(RECORDED)
        except BaseException:
            self.end()
            raise

    def start(self, rank, port):
        context = self.context
        command = [context.ftexec, context.made.plan(PLAN), f"--data={context.text}", "--steps=1000000", "--device=cuda",
                   f"--metrics={self.metrics}", "--progress=off", f"--timeout={EMULATED_TIMEOUT if context.emulated else TIMEOUT}",
                   *context.options]
        env = {**context.environment, "RANK": str(rank), "LOCAL_RANK": str(rank), "WORLD_SIZE": "2", "LOCAL_WORLD_SIZE": "2",
               "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port)}
        with self.logs[rank].open("wb") as out:
            return context.programs.start([str(word) for word in command], out, env)

    def await_steps(self, count):
        end = time.monotonic() + min(90, self.context.left())
        while len(self.metrics.read_text().splitlines()) < count:
            for rank, process in enumerate(self.processes):
                if process.poll() is not None:
                    raise Failed(f"rank {rank} ended before step {count}: {runner.last_line(self.logs[rank])}", self.said())
            if time.monotonic() > end:
                raise OutOfTime(f"no {count} steps in time")
            time.sleep(0.05)

    def lose(self, rank, number):
        """Seconds until the other has ended, and its status."""
        begin = time.monotonic()
        os.kill(self.processes[rank].pid, number)
        try:
            status = self.processes[1 - rank].wait(SECONDS_TO_END)
        except subprocess.TimeoutExpired:
            raise Failed(f"the other rank did not end within {SECONDS_TO_END} s", self.said()) from None
        return time.monotonic() - begin, status

    def end(self):
        """Also of what is stopped, as a launcher would."""
        for process in self.processes:
            runner.end_session(process.pid)
            with contextlib.suppress(subprocess.TimeoutExpired):  # a driver may keep hold of it
                process.wait(10)
            self.context.programs.ended(process)

    def left_behind(self):
        return [process.pid for process in self.processes if process.poll() is None]

    def said(self):
        return "\n".join(f"rank {rank}: {runner.tail(log)}" for rank, log in enumerate(self.logs))


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def lost_rank(context, number, what, only_if_shared):
    @runner.once
    def lose():
        before = used_mib(context)
        ranks = Ranks(context)
        try:
            seconds, status = ranks.lose(1, number)
            line = runner.last_line(ranks.logs[0])
        finally:
            ranks.end()
        return before, ranks, seconds, status, line

    def named():
        _, ranks, seconds, status, line = lose()
        if status == 0 or not re.search(r"\brank 1\b", line):
            raise Failed(f"rank 0 ended with status {status} and does not name rank 1: {line}", ranks.said())
        return f"{seconds:.1f} s: {line}"

    def free():
        before, ranks, *_ = lose()
        if left := ranks.left_behind():
            raise Failed(f"process {left[0]} does not end", ranks.said())
        training.train(context, PLAN, "cuda", steps=1)
        return f"a step can be made{memory_again(context, before)}"
    yield attempt(context, f"a rank {what} in a recorded step: the other ends within {SECONDS_TO_END} s and names it",
                  only_if_shared(named))
    yield attempt(context, f"the GPU is free after a rank was {what}", only_if_shared(free))


def used_mib(context):
    """Memory in use on all GPUs; None where nothing tells."""
    command = ["nvidia-smi", "--query-gpu=memory.used", "--format=csv,noheader,nounits"]
    words = "" if context.emulated else machine.output_of(command, 30)
    return sum(int(word) for word in words.split()) if re.fullmatch(r"[\d\s]+", words) else None


def memory_again(context, before):
    """That as much memory is in use as before; the driver takes a moment to give it back."""
    if before is None:
        return "; nothing here tells of the memory in use"
    end = time.monotonic() + SECONDS_FOR_MEMORY
    while (now := used_mib(context)) is not None and now > before + 64:
        if time.monotonic() > end:
            raise Failed(f"{now} MiB are in use, {before} were before")
        time.sleep(0.5)
    return f"; {now} MiB in use, {before} before"


def one_gpu(context):
    context = shared(context)
    yield from one_rank(context)
    yield from two_ranks(context)

    def not_seen():
        raise Skipped("one GPU shows nothing of it; docs/gpu.md has the commands for the first node of eight")
    for what in OPEN:
        yield attempt(context, what, not_seen)


PARTS = (Part("one_gpu", run=1, seconds=240, rows=one_gpu, alone=True, plans=artifacts.plans_of_presets),)
