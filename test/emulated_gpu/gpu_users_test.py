"""What users of a node with GPUs hit first: which GPU a rank gets and whether another has it, what lies in its memory beside
the arena, what becomes of attention that cuDNN refuses."""

import os
import pathlib
import re
import unittest

import harness

EMULATED = pathlib.Path(os.environ["FT_EMULATED"])
SMALL = ("--batch=1", "--seq=16", "--layers=2")
MIB = 1 << 20
STAGING = 32 * MIB  # of each communicator, with --deterministic=on
# GPUs of which a machine announces what lies beside the arena.
TARGET = """version: 1
device: cuda
ranks_per_node: 8
memory: {{capacity_mib: {capacity}, gigabytes_per_s: 1000, beside_mib: {beside}, communicator_mib: {communicator}}}
compute:
  fp32: {{tflops: 10}}
  bf16: {{tflops: 100}}
  fp16: {{tflops: 100}}
kernels: {{latency_us: 2}}
links:
  node: {{gigabytes_per_s: 100, latency_us: 5}}
  network: {{gigabytes_per_s: 10, latency_us: 20}}
copies: {{gigabytes_per_s: 20, latency_us: 5}}
"""


class GpuUsers(harness.EndToEnd):
    def target(self, name, capacity=40000, beside=0, communicator=0):
        path = self.dir / f"{name}.yaml"
        path.write_text(TARGET.format(capacity=capacity, beside=beside, communicator=communicator))
        return path

    def model(self):
        source = self.dir / "model.mlir"
        if not source.exists():
            self.check("ftc", "model", "gpt2", *SMALL, "-o", source)
        return source

    def small(self, *options):
        plan = self.dir / ("plan" + "".join(re.findall(r"\w+", "".join(map(str, options)))) + ".bin")
        self.check("ftc", "compile", self.model(), "--strategy=full_shard", *options, "-o", plan)
        return plan

    def start(self, plan, world, *options, machine="", show="$LOCAL_RANK", deterministic="on", **env):
        """Each rank is shown the GPU `show`, a word for the shell; all of them where it is empty."""
        shown = f"CUDA_VISIBLE_DEVICES={show} " if show else ""
        out = self.dir / "metrics.jsonl"
        out.unlink(missing_ok=True)
        return harness.run("ftrun", f"--nproc-per-node={world}", "--standalone", "/bin/sh", "-c", f'{shown}exec "$@"', "sh",
                           EMULATED, plan, f"--data={self.text}", "--steps=3", f"--metrics={out}", "--progress=off",
                           "--device=cuda", f"--deterministic={deterministic}", *options,
                           env=harness.environment(FT_EMULATED_MACHINE=machine, **env))

    def numbers(self, done):
        self.assertEqual(done.returncode, 0, done.stderr)
        return [(row["loss"], row["grad_norm"]) for row in harness.metrics(self.dir / "metrics.jsonl")]

    def refused(self, done, *words):
        """One line says it, whatever the number of ranks."""
        self.assertEqual(done.returncode, 65, done.stderr)
        lines = [line for line in done.stderr.splitlines() if "ftexec: " in line]
        self.assertEqual(len(lines), 1, done.stderr)
        for word in words:
            self.assertRegex(lines[0], word)

    def test_a_launcher_may_show_each_rank_one_gpu(self):
        plan = self.small()
        together = self.numbers(self.start(plan, 2, show=""))
        self.assertEqual(self.numbers(self.start(plan, 2)), together)
        self.assertEqual(self.numbers(self.start(plan, 2, show="$((7 - LOCAL_RANK))")), together)

    def test_two_ranks_on_one_gpu_are_named_with_it(self):
        plan = self.small()
        self.refused(self.start(plan, 2, show="3"), r"ranks 0,1 compute on one GPU, 0000:04:00\.0 of \S+; ", "--share-gpus=on")
        self.refused(self.start(plan, 2, show="", machine="devices=1"), r"ranks 0,1 compute on one GPU, 0000:01:00\.0 of ")
        self.refused(self.start(plan, 3, show="$((LOCAL_RANK / 2))"), r"ranks 0,1 compute on one GPU, 0000:01:00\.0 of ")
        checked = self.start(plan, 2, "--check", show="3")
        self.assertEqual(checked.returncode, 65, checked.stderr)
        self.assertRegex(checked.stdout, r"FAIL +GPUs +ranks 0,1 compute on one GPU, 0000:04:00\.0")

    def test_ranks_share_a_gpu_where_they_are_let(self):
        plan, new = self.small(), "devices=1,nccl=23007"
        apart = self.numbers(self.start(plan, 2, show=""))
        self.assertEqual(self.numbers(self.start(plan, 2, "--share-gpus=on", machine=new, show="")), apart)
        self.assertEqual(self.numbers(self.start(plan, 2, machine=new, show="", NCCL_MULTI_RANK_GPU_ENABLE="1")), apart)
        self.refused(self.start(plan, 2, "--share-gpus=off", machine=new, show="", NCCL_MULTI_RANK_GPU_ENABLE="1"),
                     "compute on one GPU")
        old = self.start(plan, 2, "--share-gpus=on", machine="devices=1,nccl=22809", show="")
        self.assertEqual(old.returncode, 65, old.stderr)
        self.assertIn("ranks 0,1 compute on one GPU, 0000:01:00.0 of ", old.stderr)
        self.assertIn("which NCCL 2.28.9 does not let them: NCCL 2.30 or newer does", old.stderr)
        differing = harness.run("ftrun", "--nproc-per-node=2", "--standalone", "/bin/sh", "-c",
                                'NCCL_MULTI_RANK_GPU_ENABLE=$LOCAL_RANK exec "$@"', "sh", EMULATED, plan,
                                f"--data={self.text}", "--device=cuda", env=harness.environment())
        self.assertIn("ranks differ in share_gpus: off on rank 0", differing.stderr)

    def test_what_lies_beside_the_arena_is_announced(self):
        target = self.target("known", beside=100, communicator=10)
        plan = self.small(f"--target={target}")
        for world, communicators in ((1, 0), (4, 2)):
            report = self.explain(plan, world)
            self.assertEqual(report["beside_arena_bytes"],
                             {"context": 100 * MIB, "communicators": communicators * 10 * MIB,
                              "staging": communicators * STAGING,
                              "total": 100 * MIB + communicators * (10 * MIB + STAGING)})
        text = self.check("ftc", "explain", plan, "--world-size=4").stdout
        whole = report["arena_bytes"] + report["beside_arena_bytes"]["total"]
        self.assertIn("Beyond the arena, as known announces it", text)
        self.assertRegex(text, rf"(?m)^  with the arena +{whole:,} ")
        self.assertRegex(text, rf"(?m)^  NCCL's buffers +{20 * MIB:,} ")
        self.assertIsNone(self.explain(plan, 4, "--device=cpu")["beside_arena_bytes"])
        silent = self.target("silent")
        self.assertIsNone(self.explain(plan, 4, f"--target={silent}")["beside_arena_bytes"])
        self.assertIn("of which silent announces nothing", self.check("ftc", "explain", plan, f"--target={silent}").stdout)
        # An arena that would fit alone does not.
        arena = self.explain(plan, 1)["arena_bytes"]
        for capacity, fits in ((arena // MIB + 50, False), (arena // MIB + 200, True)):
            self.assertEqual(self.explain(plan, 1, f"--target={self.target('small', capacity, 100, 10)}")["step"]["fits"], fits)
        done = self.check("ftc", "compile", self.model(), "--strategy=full_shard", "-o", self.dir / "p.bin",
                          f"--target={self.target('tight', arena // MIB + 50, 100)}")
        self.assertRegex(done.stderr, r"^ftc: the arena of a rank has .* and 100 MiB beside it .*, more than the .* of tight: ")

    def test_budgets_leave_room_for_it(self):
        silent, beside = self.target("silent"), 100 * MIB + 2 * (10 * MIB + STAGING)
        known = self.target("known", beside=100, communicator=10)
        ranks = ("--strategy=full_shard", "--world-size=4", "-o", self.dir / "p.bin")

        def smallest(option, target, pattern):
            done = harness.run("ftc", "compile", self.model(), *ranks, option, f"--target={target}")
            self.assertEqual(done.returncode, 65, done.stderr)
            return int(re.search(pattern, done.stderr)[1]), done.stderr
        for option, pattern in (("--remat=budget:1", r"smallest feasible budget is (\d+) bytes"),
                                ("--memory-budget=1", r"(?:the arena of a rank has|a rank takes) (\d+) bytes")):
            with self.subTest(option=option):
                alone, text = smallest(option, silent, pattern)
                self.assertNotIn("beside", text)
                whole, text = smallest(option, known, pattern)
                self.assertEqual(whole, alone + beside)
                self.assertIn(f"{beside} bytes of it lie beside the arena, as known announces", text)
                option = option[:-1]
                self.assertEqual(smallest(f"{option}{whole - 1}", known, pattern)[0], whole)
                self.check("ftc", "compile", self.model(), *ranks, f"{option}{whole}", f"--target={known}")
                self.assertLessEqual(self.explain(self.dir / "p.bin", 4)["arena_bytes"], alone)

    def test_more_than_was_announced_is_told_once(self):
        plan = self.small(f"--target={self.target('modest', beside=1)}")
        low = re.compile(r"ftexec: 3\.00 MiB lie beside the arena .*, 1\.00 MiB were announced by modest: ")
        for machine, told in (("context=3145728", 1), ("context=1000000", 0), ("context=3145728,no_nvml", 0)):
            with self.subTest(machine=machine):
                done = self.start(plan, 1, machine=machine)
                self.assertEqual(done.returncode, 0, done.stderr)
                self.assertEqual(len(low.findall(done.stderr)), told, done.stderr)
                self.assertEqual(done.stderr.count("lie beside"), told)
        # What others take is not ours, and said apart. Beside the arena lie some words of our own, too.
        done = self.start(plan, 1, machine="context=1000000")
        parts = re.findall(r"device memory in use: (\d+) bytes, (\d+) of them the arena, (\d+) context, libraries and "
                           r"communicators, (\d+) other processes\n", done.stdout)
        self.assertEqual(len(parts), 2, done.stdout)  # before the first step and at the end
        for used, arena, beside, others in (map(int, row) for row in parts):
            self.assertEqual((arena, others), (self.explain(plan, 1)["arena_bytes"], 1 << 30))
            self.assertEqual(used, arena + beside + others)
            self.assertTrue(1000000 <= beside < 1000000 + (1 << 12), beside)
        # A plan for the nominal machine announces nothing.
        self.assertNotIn("lie beside", self.start(self.small(), 1, machine="context=3145728").stderr)

    def test_attention_that_cudnn_refuses(self):
        half, machine = self.small("--mixed-precision=bf16"), "cudnn_refuses"
        self.refused(self.start(half, 1, machine=machine, deterministic="off"),
                     r"cuDNN refuses attention 1x16, .*, bf16: no engine \(emulated\); --attention=own ")
        own = self.start(half, 1, "--attention=own", machine=machine, deterministic="off")
        self.assertEqual(own.returncode, 0, own.stderr)
        self.assertNotIn("takes longer", own.stdout)
        done = self.start(half, 1, machine=machine)
        self.assertEqual(done.returncode, 0, done.stderr)
        lines = [line for line in done.stdout.splitlines() if "takes longer than cuDNN's kernels" in line]
        self.assertEqual([line.partition(" 1x16")[0] for line in lines], ["attention", "attention gradient"], done.stdout)
        single = self.start(self.small(), 1, machine=machine, deterministic="off")  # cuDNN has nothing for fp32 anyway
        self.assertEqual(single.returncode, 0, single.stderr)
        self.assertNotIn("takes longer", single.stdout)


if __name__ == "__main__":
    unittest.main()
