"""ftexec --check: what it finds on how many ranks, of links and of ranks that fail, and what it ends with."""

import os
import pathlib
import re
import signal
import subprocess
import time
import unittest

from checking import Checking
from faked_launchers_test import open_mpi, slurm_step
from harness import BIN, environment, run
from lost_rank_test import free_port, ranks_of
from targets_test import TEXT as TARGET
from watch_test import Pulses, rank_of

ALWAYS = ["launcher", "ranks", "same job", "plan", "data", "outputs", "settings", "device", "threads", "memory", "/dev/shm", "target",
          "kernels", "disk"]


class Check(Checking):
    def assert_figures(self, text, latency_us, bytes_per_s):
        """What was found of a link: within half and thrice of a latency, a quarter of a rate."""
        found = re.search(r"right results, ([\d.]+) us at \d+ bytes; ([\d.]+) ([MG])B/s at", text)
        self.assertIsNotNone(found, text)
        self.assertGreater(float(found[1]), 0.5 * latency_us, text)
        self.assertLess(float(found[1]), 3 * latency_us, text)
        rate = float(found[2]) * {"M": 1e6, "G": 1e9}[found[3]]
        self.assertLess(abs(rate / bytes_per_s - 1), 0.25, text)

    def test_ranks_and_axes(self):
        cases = {
            (1, "full_shard"): {},
            (2, "no_shard"): {"all_reduce over replica": 2},
            (2, "full_shard"): {"all_gather over shard": 2, "reduce_scatter over shard": 2, "all_reduce over shard": 2},
            (4, "full_shard"): {"all_gather over shard": 4, "reduce_scatter over shard": 4, "all_reduce over shard": 4},
            (4, "hybrid_shard", "--mesh=replica:2,shard:2"): {
                "all_gather over shard": 2, "reduce_scatter over shard": 2, "all_reduce over replica": 2, "all_reduce over shard": 2,
                "all_reduce over world": 4},
        }
        for (world, strategy, *options), links in cases.items():
            with self.subTest(world=world, strategy=strategy):
                table = self.checked(self.plan("gpt2", strategy), *options, world=world)
                self.assertEqual([check for check in ALWAYS if check not in table], [])
                self.assertEqual(sorted(set(table) - set(ALWAYS) - {"speed", "links"}), sorted(links))
                self.assertIn(f"all {world} are here, each once, on 1 host" if world > 1 else "1 is here, on 1 host", table["ranks"][1])
                for link, ranks in links.items():
                    self.assertIn(f"{ranks} ranks, right results, ", table[link][1])
                    self.assertRegex(table[link][1], r"needed: [\d.]+ us at \d+ bytes; .*\(cpu\)")
                self.assertEqual("links" in table, world == 1)
                for check in ("plan", "data", "memory", "/dev/shm", "kernels", "disk", "same job"):
                    self.assertEqual(table[check][0], "ok", table[check])

    def test_a_rank_that_does_not_come(self):
        env = environment(RANK=0, WORLD_SIZE=2, LOCAL_RANK=0, LOCAL_WORLD_SIZE=2, MASTER_ADDR="127.0.0.1", MASTER_PORT=free_port())
        table = self.checked(self.plan("gpt2", "full_shard"), "--timeout=2", status=75, env=env)
        self.assertEqual(table["ranks"][0], "FAIL")
        self.assertIn("rank 1 of 2 did not arrive within 2s", table["ranks"][1])
        for check in ("plan", "data", "outputs", "settings"):
            self.assertEqual(table[check][0], "ok")

    def test_two_processes_that_claim_a_rank(self):
        done = self.shell(self.plan("gpt2", "full_shard"), "[ $RANK = 2 ] && export RANK=1; set -- --timeout=30", world=3)
        self.assertEqual(done.returncode, 65, done.stdout + done.stderr)
        verdict, text = self.table(done.stdout)["ranks"]
        self.assertEqual(verdict, "FAIL")
        self.assertRegex(text, r"two processes claim rank 1: pid \d+ on \S+, and pid \d+ on \S+; give every process its own RANK")
        # Each of the three says so, the two that claim it as rank 1.
        for number, rank in enumerate((0, 1, 1)):
            self.assertRegex(done.stderr, rf"\[rank {number}\] ftexec: rank {rank}: two processes claim rank 1")

    def test_other_launchers(self):
        plan, job = self.plan("gpt2", "full_shard"), 31000 + os.getpid() % 1000
        for name, variables in (("srun", [slurm_step(rank, job) for rank in (0, 1)]),
                                ("mpirun", [open_mpi(rank, f"job-{os.getpid()}") for rank in (0, 1)])):
            with self.subTest(launcher=name):
                done = self.ranks_by_hand(plan, lambda i: ["--timeout=20"], variables)
                self.assertEqual([status for status, _, _ in done], [0, 0], done)
                table = self.table(done[0][1])
                self.assertIn(f"{name}: rank 0 of 2", table["launcher"][1])
                self.assertEqual(done[1][1], "")  # one table

    def test_everything_that_fails_is_told(self):
        absent = self.dir / "absent"
        table = self.checked(self.plan("gpt2", "full_shard"), f"--init={absent}/w", f"--save-weights={absent}/x",
                             f"--eval-data={absent}/e", world=2, status=74)
        self.assertEqual({check for check, (verdict, _) in table.items() if verdict == "FAIL"}, {"data", "init", "outputs"})
        # The rest was looked at all the same.
        for check in ("plan", "memory", "kernels", "all_gather over shard", "disk"):
            self.assertNotEqual(table[check][0], "FAIL")
        self.assertIn("rank 0: 3 of", self.said)
        self.assertIn("failed: data, init, outputs", self.said)

    def test_a_plan_that_is_none(self):
        plan = self.dir / "plan.bin"
        plan.write_bytes(b"nonsense")
        table = self.checked(plan, world=2, status=65)
        self.assertEqual(table["plan"][0], "FAIL")
        self.assertIn("links", table)
        table = self.checked(self.plan("gpt2", "full_shard"), "--mesh=replica:3,shard:1", world=2, status=65)
        self.assertIn("--mesh=replica:3,shard:1 has 3 ranks, but the run has 2", table["plan"][1])

    def test_what_fails_on_one_rank_is_in_the_table(self):
        plan, other = self.plan("gpt2", "full_shard"), self.plan("llama", "full_shard")
        cases = (
            ("[ $RANK = 2 ] && set -- --data-format=llmc", 65, "data", r"rank 2: '.*text.txt'"),
            ("[ $RANK != 0 ] && set -- --init=/absent", 65, "init", r"ranks 1,2: cannot open '/absent'"),
            ("[ $RANK = 1 ] && set -- --lr=0.5", 65, "same job", r"ranks differ in lr: 0\.000\d+ on rank 0 \(\S+\), 0\.5 on rank 1"),
            ("[ $RANK = 1 ] && export OMP_NUM_THREADS=none", 65, "threads", r"rank 1: .*OMP_NUM_THREADS='none'"),
            ("[ $RANK = 1 ] && set -- --log-dir=/proc/none", 74, "outputs", r"rank 1: "),
            (f"[ $RANK = 1 ] && exec {BIN}/ftexec {other} --data={self.text} --check", 65, "same job", "hold different plans"),
        )
        for script, status, check, text in cases:
            with self.subTest(script=script):
                done = self.shell(plan, script, world=3)
                self.assertEqual(done.returncode, status, done.stdout + done.stderr)
                verdict, found = self.table(done.stdout)[check]
                self.assertEqual(verdict, "FAIL")
                self.assertRegex(found, text)

    def test_a_rank_that_does_not_check(self):
        done = self.shell(self.plan("gpt2", "full_shard"),
                          f'[ $RANK = 1 ] && exec {BIN}/ftexec {self.plan("gpt2", "full_shard")} --data={self.text} --steps=3')
        self.assertEqual(done.returncode, 65, done.stdout + done.stderr)
        self.assertIn("ranks differ in check: on on rank 0 (", self.table(done.stdout)["ranks"][1])

    def test_a_slowed_link_is_measured(self):
        plan = self.plan("gpt2", "full_shard")
        table = self.checked(plan, "--emulate-link=0.02,4000", world=2)  # 2.5 MB/s
        for link in ("all_gather over shard", "reduce_scatter over shard"):
            verdict, text = table[link]
            self.assertEqual(verdict, "warn", text)
            self.assert_figures(text, 4000, 2.5e6)
            self.assertIn("; do: look at the node link", text)
        self.assertEqual(table["all_reduce over shard"][0], "warn")

    def test_figures_of_a_target(self):
        """The same emulated link is well against a target that is like it, and slow against one that is better in one figure."""
        host = TARGET.replace("device: cuda", "device: cpu")
        for node, verdict in (("{gigabytes_per_s: 0.0025, latency_us: 4000}", "ok"),
                              ("{gigabytes_per_s: 0.0025, latency_us: 400}", "warn"),
                              ("{gigabytes_per_s: 0.25, latency_us: 4000}", "warn"),
                              ("{gigabytes_per_s: 0.0001, latency_us: 90000}", "ok")):
            with self.subTest(node=node):
                target = self.shared / "target.yaml"
                target.write_text(re.sub(r"node: \{.*\}", f"node: {node}", host))
                source, plan = self.shared / "target.mlir", self.shared / "target.bin"
                self.check("ftc", "model", "gpt2", "-o", source)
                self.check("ftc", "compile", source, "--strategy=full_shard", f"--target={target}", "-o", plan)
                table = self.checked(plan, "--emulate-link=0.02,4000", world=2)
                self.assertEqual(table["all_gather over shard"][0], verdict, table["all_gather over shard"])
                self.assertIn("(target)", table["all_gather over shard"][1])
                self.assertEqual(table["target"][0], "ok")

    def test_a_target_of_another_kind(self):
        plan = self.dir / "plan.bin"
        source = self.dir / "model.mlir"
        self.check("ftc", "model", "gpt2", "-o", source)
        self.check("ftc", "compile", source, "--strategy=full_shard", "--target=h100-ib", "-o", plan)
        table = self.checked(plan, world=2)
        self.assertEqual(table["target"][0], "warn")
        self.assertEqual(table["all_gather over shard"][0], "ok")  # nothing to compare it with
        self.assertNotIn("needed", table["all_gather over shard"][1])

    def test_a_slow_rank_is_named(self):
        """One that is stopped most of the time. What it computes between two collectives takes longer than it may run."""
        plan = self.plan("gpt2", "full_shard", "--batch=128")
        launcher = subprocess.Popen(list(map(str, self.command(plan, "--emulate-link=100,2000", world=2))), stdin=subprocess.DEVNULL,
                                    stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment(OMP_NUM_THREADS=1))
        self.addCleanup(launcher.kill)
        deadline = time.monotonic() + 30
        while len(ranks := ranks_of(launcher)) < 2:
            self.assertLess(time.monotonic(), deadline)
            time.sleep(0.01)
        pulses = Pulses({rank_of(pid): pid for pid in ranks}[1], stopped=0.05, running=0.005)
        pulses.start()
        self.addCleanup(pulses.end)
        output, errors = launcher.communicate(timeout=200)
        self.assertEqual(launcher.returncode, 0, output + errors)
        verdict, text = self.table(output)["speed"]
        self.assertEqual(verdict, "warn", output)
        self.assertRegex(text, r"rank 1 \(\S+\) [\d.]+ ms, [\d.]+ times the median")
        self.assertNotIn("rank 0", text)

    def test_ranks_that_end_in_the_midst(self):
        plan = self.plan("gpt2", "full_shard")
        for number, victim, status, text in ((signal.SIGKILL, 1, 128 + signal.SIGKILL, "rank 1 was lost"),
                                             (signal.SIGTERM, 1, 128 + signal.SIGTERM, "rank 1 failed: ended by signal Terminated"),
                                             (signal.SIGTERM, None, -signal.SIGTERM, "ended by signal Terminated")):
            with self.subTest(signal=number, victim=victim):
                # Its first collective takes a minute.
                launcher = subprocess.Popen(list(map(str, self.command(plan, "--emulate-link=1,60000000", world=2))),
                                            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                            env=environment())
                self.addCleanup(launcher.kill)
                deadline = time.monotonic() + 30
                while len(ranks := ranks_of(launcher)) < 2 or not all(self.is_measuring(pid) for pid in ranks):
                    self.assertLess(time.monotonic(), deadline)
                    time.sleep(0.02)
                begin = time.monotonic()
                os.kill(launcher.pid if victim is None else {rank_of(pid): pid for pid in ranks}[victim], number)
                output, errors = launcher.communicate(timeout=30)
                self.assertLess(time.monotonic() - begin, 10)
                self.assertEqual(launcher.returncode, status, output + errors)
                table = self.table(output)
                self.assertEqual(table["ranks"][0], "FAIL")
                self.assertIn(text, table["ranks"][1])
                self.assertEqual(table["memory"][0], "ok")

    @staticmethod
    def is_measuring(pid):
        """Whether the process has the stream of a check, named as devices name theirs."""
        names = []
        for path in pathlib.Path(f"/proc/{pid}/task").glob("*/comm"):
            try:
                names.append(path.read_text().strip())
            except OSError:
                pass
        return any("check" in name for name in names)

    def test_the_null_device(self):
        plan = self.plan("gpt2", "hybrid_shard")
        table = self.checked_null(plan, "--world-size=16")
        self.assertEqual(sorted(check for check in table if " over " in check),
                         ["all_gather over shard", "all_reduce over replica", "all_reduce over shard", "all_reduce over world",
                          "reduce_scatter over shard"])
        self.assertRegex(table["all_reduce over replica"][1], r"2 ranks, not measured: .*needed: 50\.0 us at 4 bytes; 0\.35 GB/s")
        self.assertRegex(table["all_gather over shard"][1], r"8 ranks, not measured: .*needed: 20\.0 us at 32 bytes; 2\.50 GB/s")
        self.assertIn("not checked", table["ranks"][1])
        self.assertEqual(self.checked_null(plan, "--world-size=16", "--trace=/absent/t.json", status=74)["outputs"][0], "FAIL")
        self.assertEqual(self.checked_null(plan, "--world-size=13", status=65)["plan"][0], "FAIL")

    def checked_null(self, plan, *options, status=0):
        done = run("ftexec", plan, "--device=null", "--check", *options)
        self.assertEqual(done.returncode, status, done.stdout + done.stderr)
        return self.table(done.stdout)


if __name__ == "__main__":
    unittest.main()
