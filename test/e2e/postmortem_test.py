"""Ranks that are ended leave reports of where they stood, and `ftc postmortem` says from them what hung where."""

import ctypes
import json
import os
import pathlib
import re
import shutil
import signal
import struct
import subprocess
import time
import unittest

from file_faults import FileFaults, library
from harness import BIN, EndToEnd, children, environment, run
from lost_rank_test import free_port, ranks_of
from outputs_test import can_mount
from watch_test import rank_of

WORLD = 4
PTRACE_ATTACH, PTRACE_DETACH, WALL = 16, 17, 0x40000000


class StoppedThread:
    """One thread of a process stands still, as in a driver that does not answer; the others go on."""

    libc = ctypes.CDLL(None, use_errno=True)
    libc.ptrace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]
    libc.ptrace.restype = ctypes.c_long

    def __init__(self, pid, name):
        tasks = {path.parent.name: path.read_text().strip() for path in pathlib.Path(f"/proc/{pid}/task").glob("*/comm")}
        self.id = int(next(task for task, comm in tasks.items() if comm == name))
        if self.libc.ptrace(PTRACE_ATTACH, self.id, None, None) != 0:
            raise unittest.SkipTest(f"skipped: this machine lets nobody stop a thread: {os.strerror(ctypes.get_errno())}")
        os.waitpid(self.id, WALL)

    def reap(self):
        """Its end has to be asked for before that of its process is told to anybody."""
        while not (os.WIFEXITED(status := os.waitpid(self.id, WALL)[1]) or os.WIFSIGNALED(status)):
            pass


class Postmortem(EndToEnd):
    def setUp(self):
        super().setUp()
        self.logs, self.out = self.dir / "logs", self.dir / "metrics.jsonl"

    def command(self, *options, plan=None, data=None, steps=1000000):
        return [BIN / "ftexec", plan or self.plan("gpt2", "full_shard"), f"--data={data or self.text}", f"--steps={steps}",
                "--progress=off", f"--metrics={self.out}", f"--log-dir={self.logs}", "--timeout=4", *options]

    def await_steps(self, count=3):
        deadline = time.monotonic() + 60
        while not (self.out.exists() and self.out.read_text().count("\n") >= count):
            self.assertLess(time.monotonic(), deadline, "training did not start")
            time.sleep(0.02)

    def start(self, *options, world=WORLD, steps=3, prefix=(), extra=None, **kwargs):
        """Ranks with no launcher around, by rank; each has gone `steps` steps."""
        port = free_port()
        ranks = []
        for rank in range(world):
            env = environment(RANK=rank, WORLD_SIZE=world, LOCAL_RANK=rank, LOCAL_WORLD_SIZE=world, MASTER_ADDR="127.0.0.1",
                              MASTER_PORT=port, OMP_NUM_THREADS=1, **(extra or {}))
            ranks.append(subprocess.Popen([*prefix, *map(str, self.command(*options, **kwargs))], env=env, stdin=subprocess.DEVNULL,
                                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True))
        self.addCleanup(lambda: [(rank.kill(), rank.communicate()) for rank in ranks if rank.poll() is None])
        if steps:
            self.await_steps(steps)
        return ranks

    def end(self, ranks, timeout=40):
        """Standard error by rank."""
        return [rank.communicate(timeout=timeout)[1] for rank in ranks]

    def report(self, rank, attempt=0):
        path = self.logs / f"rank{rank}.attempt{attempt}.report.json"
        self.assertLess(path.stat().st_size, 128 << 10)
        return json.loads(path.read_text())

    def reported(self, attempt=0):
        return sorted(int(re.match(r"rank(\d+)\.", path.name)[1]) for path in self.logs.glob(f"*.attempt{attempt}.report.json"))

    def postmortem(self, *options):
        text = self.check("ftc", "postmortem", self.logs, *options).stdout
        self.assertNotIn("left out", text)
        return text

    def diagnosis(self, text):
        return text.split("\n\n")[1]

    def says_who_is_missing(self, errors):
        return all(re.search(r"timed out after 4s in '.*' #\d+ .* waiting for rank 2 ", error) for error in errors)

    def stop(self, rank, backend):
        """Standard error of the others."""
        shutil.rmtree(self.logs, ignore_errors=True)
        self.out.unlink(missing_ok=True)
        ranks = self.start(f"--comm-backend={backend}")
        ranks[rank].send_signal(signal.SIGSTOP)
        errors = self.end([other for other in ranks if other is not ranks[rank]])
        ranks[rank].kill()
        self.end([ranks[rank]])
        self.assertEqual([other.returncode for other in ranks], [-9 if other is ranks[rank] else 75 for other in ranks], errors)
        self.assertEqual(self.reported(), [other for other in range(WORLD) if other != rank])
        return errors

    def test_a_stopped_rank_and_the_collective_it_did_not_come_to(self):
        for backend in ("shm", "gloo"):
            with self.subTest(backend=backend):
                errors = self.stop(2, backend)
                # What the transport said by itself is what the reports have to agree with.
                self.assertTrue(self.says_who_is_missing(errors), errors)
                timed_out, waiting = self.first_collective([0, 1, 3])
                text = self.postmortem(self.plan("gpt2", "full_shard"))
                self.assertNotIn("not the one of this run", text)
                said = self.diagnosis(text)
                self.assertTrue(said.startswith(f"Rank 2 did not come to {timed_out} (train_step, instruction "), said)
                self.assertRegex(said, "over (shard|world) of ranks 0-3, call ")
                self.assertIn(f"where rank{'s' * (len(waiting) > 1)} {','.join(map(str, waiting))} waited for", said)
                self.assertIn("Rank 2 left no report", said)
                self.check_waiting_reports()

    def test_rank_0_is_stopped(self):
        """Which would say of whom the others wait: all of them name it, whatever they saw themselves."""
        for backend in ("shm", "gloo"):
            with self.subTest(backend=backend):
                for error in self.stop(0, backend):
                    self.assertRegex(error, r"(timed out after 4s in|the connection to rank \d .* broke).*\brank 0 \(pid \d+ on ", error)
                self.assertTrue(self.diagnosis(self.postmortem()).startswith("Rank 0 did not come to "), self.postmortem())

    def first_collective(self, ranks):
        """By the reports alone: the first one in the schedule that ranks stand in, and who does. Of a rank that was stopped amid
        one some have got what they needed, and stand in the next."""
        standing = sorted((report["program"]["runs"], stream["current"]["instruction"], stream["current"]["title"], rank)
                          for rank in ranks for report in [self.report(rank)] for stream in report["streams"]
                          if stream.get("current", {}).get("axis"))
        return standing[0][2], [entry[3] for entry in standing if entry[:3] == standing[0][:3]]

    def check_waiting_reports(self):
        mine = [self.report(rank) for rank in (0, 1, 3)]
        self.assertTrue(any(report.get("missing_ranks") == [2] for report in mine))
        self.assertEqual(len({report["meeting"] for report in mine}), 1)
        for rank, report in zip((0, 1, 3), mine):
            self.assertEqual((report["rank"], report["world_size"], report["attempt"], report["mesh"]),
                             (rank, WORLD, 0, {"replica": 1, "shard": WORLD}))
            self.assertEqual(report["activity"]["name"], "computing")
            # Rank 0 has written of three steps; another may still stand in the last collective of the third.
            self.assertGreaterEqual(report["activity"]["step"], 3 if rank == 0 else 2)
            streams = {stream["name"]: stream for stream in report["streams"]}
            self.assertEqual(set(streams), {"compute", "gather", "reduce"})
            standing = [stream["current"] for stream in streams.values() if "axis" in stream.get("current", {})]
            self.assertTrue(any(3 < entry["began_s_ago"] < 30 and entry["bytes"] > 0
                                # Gradients, or the counts of the optimizer: whichever the stopped rank had come to.
                                and re.match(r"(f32|i64)\[\d", entry["shapes"]) for entry in standing), standing)
            counts = report["collectives"]
            self.assertTrue(any(count["entered"] == count["left"] + 1 for count in counts), counts)
            for stream in streams.values():
                recent = stream["recent"]
                self.assertTrue(0 < len(recent) <= 64)
                ago = [entry["ended_s_ago"] for entry in recent]
                self.assertEqual(ago, sorted(ago, reverse=True))
                self.assertTrue(all(entry["took_s"] >= 0 and entry["title"] for entry in recent))
            self.assertEqual(len(streams["compute"]["recent"]), 64)

    def test_a_rank_that_hangs_and_can_still_write(self):
        """Its compute stream stands still; its other threads hear of the others' end, and leave a report."""
        ranks = self.start()
        stopped = StoppedThread(ranks[1].pid, "compute")
        self.end([ranks[0], ranks[2], ranks[3]])
        stopped.reap()
        error, = self.end([ranks[1]])
        self.assertEqual(ranks[1].returncode, 75, error)
        self.assertEqual(self.reported(), list(range(WORLD)))
        text = self.postmortem()
        said = self.diagnosis(text)
        self.assertTrue(said.startswith("Rank 1 did not come to "), said)
        self.assertRegex(said, r"Rank 1 was computing in step \d+, in .* for ([4-9]|1\d)[.\d]* s\.")
        self.assertRegex(text, r"rank 1: program \d+ since the start, train_step, compute at instruction \d+\n")

    def test_a_killed_rank(self):
        ranks = self.start()
        ranks[3].kill()
        self.end(ranks)
        self.assertEqual(self.reported(), [0, 1, 2])
        said = self.diagnosis(self.postmortem())
        self.assertTrue(said.startswith("Rank 3 was lost (its process, pid "), said)
        self.assertIn(f"pid {ranks[3].pid} ", said)
        self.assertEqual({(self.report(rank)["origin"], self.report(rank)["blamed_rank"]) for rank in (0, 1, 2)}, {("peer", 3)})

    def test_a_rank_whose_data_vanishes(self):
        """A signal of its main thread, which the guard's thread tells of."""
        for rank in range(WORLD):
            (self.dir / f"data{rank}.txt").write_bytes(b"word " * (1 << 18))
        line = f'exec "$0" "$@" --data={self.dir}/data$RANK.txt'
        command = [word for word in map(str, self.command()) if not word.startswith("--data=")]
        self.command = lambda *options: ["bash", "-c", line, *command]
        ranks = self.start()
        os.truncate(self.dir / "data1.txt", 0)
        errors = self.end(ranks)
        self.assertEqual([rank.returncode for rank in ranks], [75, 74, 75, 75], errors)
        self.assertEqual(errors[1].count("\n"), 1, errors[1])
        self.assertEqual(self.reported(), list(range(WORLD)))
        said = self.diagnosis(self.postmortem())
        self.assertTrue(said.startswith("Rank 1 failed: a file in use (data, weights) became shorter"), said)
        self.assertRegex(said, "It was reading (data|the next batch) in step ")

    def test_steps_that_are_not_finite_end_all_ranks_alike(self):
        ranks = self.start("--lr=1e30", "--max-bad-steps=1", steps=0)
        errors = self.end(ranks)
        self.assertEqual([rank.returncode for rank in ranks], [65] * WORLD, errors)
        said = self.diagnosis(self.postmortem())
        self.assertTrue(said.startswith("All ranks that left a report ended with one error: step "), said)
        self.assertIn("training has diverged", said)

    def test_a_rank_that_is_refused_before_the_ranks_meet(self):
        line = 'if [ $RANK = 2 ]; then exec "$0" "$@" --data=absent.txt; fi; exec "$0" "$@" --data=' + str(self.text)
        command = [word for word in map(str, self.command()) if not word.startswith("--data=")]
        self.command = lambda *options: ["bash", "-c", line, *command]
        errors = self.end(self.start(steps=0))
        self.assertIn("absent.txt", errors[2])
        self.assertEqual(self.reported(), list(range(WORLD)))
        text = self.postmortem()
        self.assertTrue(self.diagnosis(text).startswith("Rank 2 failed: "), text)
        self.assertIn("absent.txt", self.diagnosis(text))
        self.assertIn("ranks 0,1,3: meeting the other ranks", text)

    def test_a_save_that_does_not_end(self):
        """Of one rank: its fsync never returns, others wait for its word. Somebody ends the run by a signal."""
        folder = self.dir / "out"
        folder.mkdir()
        options = (f"--checkpoint-dir={folder}/checkpoints", "--save-every=2", "--async-save=off", "--grace=1", "--state-dict-type=sharded")
        faults = FileFaults(folder, env=environment(OMP_NUM_THREADS=1), timeout=60)
        launcher = [BIN / "ftrun", "--standalone", "--nproc-per-node=2"]
        at = faults.count([*launcher, *self.command(*options, steps=3)], rank=1).numbers("fsync")[0]
        for asynchronous in (False, True):
            with self.subTest(asynchronous=asynchronous):
                shutil.rmtree(folder)
                folder.mkdir()
                shutil.rmtree(self.logs)
                self.out.unlink()
                state = self.dir / f"state{asynchronous}"
                ranks = self.start(*(o.replace("=off", "=on") if asynchronous else o for o in options), world=2, steps=0, extra={
                    "FT_FAULTS_PREFIX": os.path.realpath(folder), "FT_FAULTS_STATE": state, "FT_FAULTS_AT": at, "FT_FAULTS_DO": "hang",
                    "FT_FAULTS_RANK": 1, "LD_PRELOAD": library()})
                self.await_steps(2)
                time.sleep(1)
                for rank in ranks:
                    rank.send_signal(signal.SIGTERM)
                self.end(ranks)
                self.assertEqual(self.reported(), [0, 1])
                self.assertEqual(self.report(1)["saving" if asynchronous else "activity"]["name"], "saving")
                self.assertEqual(self.report(1)["saving" if asynchronous else "activity"]["steps_done"], 2)
                said = self.diagnosis(self.postmortem())
                self.assertTrue(said.startswith("Rank 1 had not written its part of the checkpoint, and rank 0 waited for it."), said)

    def test_attempts_are_kept_apart(self):
        """A run that is restarted by its launcher, and one that is started anew in the same folder."""
        launcher = subprocess.Popen([BIN / "ftrun", "--standalone", "--nproc-per-node=2", "--max-restarts=1", "--grace=2", *self.command()],
                                    env=environment(OMP_NUM_THREADS=1), stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                    stderr=subprocess.DEVNULL)
        self.addCleanup(launcher.wait)
        self.addCleanup(launcher.kill)
        for victim in (0, 1):
            self.await_steps()
            pids = {rank_of(pid): pid for pid in ranks_of(launcher)}
            self.out.unlink()  # of this attempt: the next one makes another
            os.kill(pids[victim], signal.SIGKILL)
            if victim == 0:
                self.await_steps()
        self.assertNotEqual(launcher.wait(timeout=40), 0)
        self.assertEqual((self.reported(0), self.reported(1)), ([1], [0]))
        self.assertEqual([self.report(1, 0)["attempt"], self.report(0, 1)["attempt"]], [0, 1])
        newest, first = self.postmortem(), self.postmortem("--attempt=0")
        self.assertIn(", attempt 1: ", newest.splitlines()[0])
        self.assertTrue(self.diagnosis(newest).startswith("Rank 1 was lost"), newest)
        self.assertIn("also here: attempt 0, ended ", newest)
        self.assertIn(", attempt 0: ", first.splitlines()[0])
        self.assertTrue(self.diagnosis(first).startswith("Rank 0 was lost"), first)
        refused = run("ftc", "postmortem", self.logs, "--attempt=7")
        self.assertEqual((refused.returncode, refused.stderr.count("\n")), (65, 1))
        # Rank 1's report of attempt 0 is of the run before: it is not taken for one of this.
        ranks = self.start(world=2)
        ranks[1].kill()
        self.end(ranks)
        self.assertEqual((self.reported(0)), [0, 1])
        text = self.postmortem()
        self.assertIn("attempt 0: ended", text.splitlines()[0])
        self.assertIn("reports of 1 of 2 ranks", text.splitlines()[0])
        self.assertTrue(self.diagnosis(text).startswith("Rank 1 was lost"), text)

    @unittest.skipUnless(can_mount(), "skipped: cannot mount file systems")
    def test_a_full_disk_does_not_hide_the_error(self):
        self.logs.mkdir()
        subprocess.run(["mount", "-t", "tmpfs", "-o", "size=128k", "tmpfs", self.logs], check=True)
        self.addCleanup(subprocess.run, ["umount", self.logs], check=True)
        ranks = self.start(world=2)
        with open(self.logs / "filler", "wb", buffering=0) as filler, self.assertRaises(OSError):
            while filler.write(bytes(4096)):
                pass
        ranks[1].kill()
        error = self.end(ranks)[0]
        self.assertEqual(ranks[0].returncode, 75, error)
        self.assertRegex(error, r"(?m)^ftexec: rank 0: rank 1 was lost ")
        self.assertRegex(error, r"(?m)^ftexec: rank 0: the report of where this rank stood is lost: cannot write .*full")
        self.assertEqual(self.reported(), [])
        self.assertEqual([path.name for path in self.logs.iterdir() if ".tmp." in path.name], [])

    def test_a_run_that_ends_well_leaves_none(self):
        self.check(BIN / "ftrun", "--standalone", "--nproc-per-node=2", *self.command(steps=3))
        self.assertEqual(self.reported(), [])
        done = run("ftc", "postmortem", self.logs)
        self.assertEqual((done.returncode, done.stderr.count("\n")), (65, 1), done.stderr)
        self.assertIn("has no reports", done.stderr)
        absent = run("ftc", "postmortem", self.dir / "absent")
        self.assertEqual((absent.returncode, absent.stderr.count("\n")), (74, 1), absent.stderr)

    def test_reports_by_others(self):
        """Real reports, each damaged in a way: one line for each, the rest is used, and nothing crashes."""
        ranks = self.start(world=3)
        ranks[2].kill()
        self.end(ranks)
        whole = (self.logs / "rank0.attempt0.report.json").read_bytes()
        report = json.loads(whole)
        damaged = {"cut": whole[:-20], "empty": b"", "other": b"[1, 2]", "deep": b"[" * 500000, "nul": whole[:50] + b"\0" + whole[50:],
                   "large": whole + b" " * (1 << 20), "bytes": bytes(range(256)), "number": whole.replace(b'"rank": 0', b'"rank": 1e400')}
        for name, change in {"version": {"version": 2}, "rank": {"rank": -1}, "above": {"rank": 3}, "world": {"world_size": 1 << 40},
                             "mesh": {"mesh": {"replica": 1 << 20, "shard": 1 << 20}}, "type": {"streams": 7}, "entry": {"streams": [7]},
                             "time": {"taken": "yesterday"}, "cause": {"cause": ["x"]}}.items():
            damaged[name] = json.dumps({**report, **change}).encode()
        for name, content in damaged.items():
            (self.logs / f"{name}.report.json").write_bytes(content)
        (self.logs / "folder.report.json").mkdir()
        os.mkfifo(self.logs / "pipe.report.json")
        os.symlink("/dev/zero", self.logs / "device.report.json")
        (self.logs / "twice.report.json").write_bytes(whole)
        done = self.check("ftc", "postmortem", self.logs, timeout=60)
        self.assertTrue(self.diagnosis(done.stdout).startswith("Rank 2 was lost"), done.stdout)
        lines = done.stdout.splitlines()
        for name in [*damaged, "folder", "pipe", "device"]:
            self.assertEqual(sum(f"{name}.report.json" in line for line in lines), 1, (name, done.stdout))
        self.assertEqual(sum("rank 0 has two reports" in line for line in lines), 1, done.stdout)
        self.assertLess(len(done.stdout), 20000)


if __name__ == "__main__":
    unittest.main()
