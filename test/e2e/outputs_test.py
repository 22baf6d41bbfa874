"""What cannot be written is found before the work, and what fails while it is written is said; nothing is lost by either."""

import contextlib
import shutil
import subprocess
import tempfile
import unittest

import event_files
from harness import BIN, EndToEnd, environment, metrics, run
from lost_rank_test import free_port


def can_mount():
    with tempfile.TemporaryDirectory(prefix="ft-mount-probe-") as folder:  # of its own: others may ask at the same time
        done = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", folder], capture_output=True)
        if done.returncode == 0:
            subprocess.run(["umount", folder], check=True)
        return done.returncode == 0


class Outputs(EndToEnd):
    @contextlib.contextmanager
    def file_system(self, options):
        folder = self.dir / "mounted"
        folder.mkdir()
        subprocess.run(["mount", "-t", "tmpfs", "-o", options, "tmpfs", folder], check=True)
        try:
            yield folder
        finally:
            subprocess.run(["umount", folder], check=True)

    def ftexec(self, *options, prefix=(), steps=1000000):
        return run(*prefix, BIN / "ftexec", self.plan("gpt2", "full_shard"), f"--data={self.text}", f"--steps={steps}",
                   "--threads=1", *options, timeout=60)

    def refused(self, done, *words):
        """Before step 0: a run of a million steps would not end in time."""
        self.assertEqual((done.returncode, len(done.stderr.splitlines())), (74, 1), done.stderr)
        self.assertNotIn("step 1/", done.stdout)
        for word in words:
            self.assertIn(str(word), done.stderr)

    def bad_places(self):
        """path -> why nothing can be written there"""
        file = self.dir / "file"
        file.write_bytes(b"x")
        (self.dir / "folder").mkdir(exist_ok=True)
        return {self.dir / "folder": "Is a directory", self.dir / "absent" / "file": "No such file", file / "below": "Not a directory",
                self.dir / ("n" * 300): "File name too long", "/dev/full": "full", "/proc/output": "No such file"}

    def test_places_that_cannot_be_written(self):
        for path, why in self.bad_places().items():
            for option in ("--save-weights", "--metrics", "--trace"):
                with self.subTest(path=path, option=option):
                    self.refused(self.ftexec(f"{option}={path}"), path, why)
        for path, why in ((self.dir / "file", "Not a directory"), (self.dir / "absent" / "logs", "No such file")):
            with self.subTest(path=path):
                self.refused(self.ftexec(f"--log-dir={path}"), path, why)
        self.assertEqual(sorted(p.name for p in self.dir.iterdir()), ["file", "folder"])
        done = run("ftexec", self.plan("gpt2", "full_shard"), "--device=null", f"--trace={self.dir}/absent/t", "--world-size=4")
        self.refused(done, "absent/t")

    def test_outputs_that_are_in_each_others_way(self):
        ck, hf = self.dir / "ck", self.dir / "hf"
        for options in ((f"--metrics={ck}/step-00000002", f"--checkpoint-dir={ck}"), (f"--save-weights={ck}/step-00000002", f"--checkpoint-dir={ck}"),
                        (f"--save-hf={hf}", f"--checkpoint-dir={hf}"), (f"--save-hf={hf}", f"--log-dir={hf}"),
                        (f"--save-hf={hf}", f"--trace={hf}/t")):
            with self.subTest(options=options):
                done = self.ftexec(*options)
                self.assertEqual((done.returncode, len(done.stderr.splitlines())), (65, 1), done.stderr)
                self.assertIn("; give another name", done.stderr)
                for option in options:
                    self.assertIn(option.split("=")[0], done.stderr)
                self.assertEqual(list(self.dir.iterdir()), [])

    def test_what_is_there_stays(self):
        kept = {name: (self.dir / name) for name in ("weights", "metrics", "trace", "logs/rank0.log")}
        (self.dir / "logs").mkdir()
        for path in kept.values():
            path.write_bytes(b"precious")
        options = [f"--save-weights={kept['weights']}", f"--metrics={kept['metrics']}", f"--trace={kept['trace']}", f"--log-dir={self.dir}/logs"]
        env = environment(RANK=0, WORLD_SIZE=2, MASTER_ADDR="127.0.0.1", MASTER_PORT=free_port())
        done = run("ftexec", self.plan("gpt2", "full_shard"), f"--data={self.text}", *options, "--timeout=1", env=env)
        self.assertEqual(done.returncode, 75, done.stderr)  # nobody else came
        for name, path in kept.items():  # a log also gets the line that ends the run
            self.assertTrue(path.read_bytes().startswith(b"precious"))
            self.assertTrue(name.startswith("logs") or path.read_bytes() == b"precious")
        self.assertEqual(len(list(self.dir.iterdir())), 4)

    def test_every_rank_tries_what_it_writes(self):
        logs = self.dir / "logs"
        (logs / "rank1.log").mkdir(parents=True)
        done = run("ftrun", "--standalone", "--nproc-per-node=2", BIN / "ftexec", self.plan("gpt2", "full_shard"),
                   f"--data={self.text}", "--steps=1000000", f"--log-dir={logs}", timeout=60)
        self.assertEqual(done.returncode, 74, done.stderr)
        self.assertIn("rank 1: cannot write", done.stderr)

    def test_the_compiler_tries_its_output_first(self):
        source = self.dir / "m.mlir"
        self.check("ftc", "model", "gpt2", "-o", source)
        for path, why in self.bad_places().items():
            self.refused(run("ftc", "compile", source, "--strategy=full_shard", "-o", path), path, why)
            self.refused(run("ftc", "model", "gpt2", "-o", path), path)
        # Tried before the model is read, let alone compiled.
        self.refused(run("ftc", "compile", self.dir / "absent.mlir", "--strategy=full_shard", "-o", self.dir / "folder"), "folder")

    @unittest.skipUnless(can_mount(), "skipped: cannot mount file systems")
    def test_room_and_read_only_file_systems(self):
        with self.file_system("size=256k") as small:
            self.refused(self.ftexec(f"--save-weights={small}/w"), f"{small}/w", "bytes, and", "free")
            (small / "filler").write_bytes(bytes(256 << 10))
            self.refused(self.ftexec(f"--metrics={small}/m"), f"{small}/m", "free some room")
            self.refused(self.ftexec(f"--trace={small}/t"), f"{small}/t", "free some room")
            self.refused(self.ftexec(f"--log-dir={small}/logs"), "free some room")
            self.assertEqual([p.name for p in small.rglob("*") if p.is_file()], ["filler"])
        shutil.rmtree(self.dir / "mounted")
        with self.file_system("ro") as frozen:
            for option in ("--save-weights", "--metrics", "--trace", "--log-dir"):
                self.refused(self.ftexec(f"{option}={frozen}/x"), f"{frozen}/x", "Read-only")

    def lost_log(self, folder, *prefix):
        """A log that finds room for 4096 bytes, curves that find none: the run goes on and saves its weights; both losses are said, that of
        the curves at once, that of the log at the end, as the status."""
        weights = self.dir / "w"
        done = self.ftexec("--progress=off", f"--eval-data={self.text}", "--eval-every=1", "--eval-steps=1", f"--log-dir={folder}",
                           f"--save-weights={weights}", steps=150, prefix=prefix)
        self.assert_lost_logs(done)
        self.assertEqual((folder / "rank0.log").stat().st_size, 4096)
        return done, weights

    def assert_lost_logs(self, done):
        self.assertEqual((done.returncode, len(done.stderr.splitlines())), (74, 2), done.stderr)
        first, last = done.stderr.splitlines()
        self.assertRegex(first, r"^ftexec: cannot write '\S*/events.out.tfevents.\S*': .*; the run goes on, but TensorBoard's curves end here$")
        self.assertRegex(last, r"^ftexec: cannot write '\S*/rank0.log': ")

    def test_a_log_that_exceeds_the_limit(self):
        done = run("bash", "-c", f"ulimit -f 4; exec {BIN}/ftexec {self.plan('gpt2', 'full_shard')} --data={self.text} --steps=150 "
                   f"--eval-data={self.text} --eval-every=1 --eval-steps=1 --log-dir={self.dir}/logs --progress=off --threads=1")
        self.assert_lost_logs(done)
        self.assertIn("ulimit -f", done.stderr)

    @unittest.skipUnless(can_mount(), "skipped: cannot mount file systems")
    def test_a_log_on_a_full_disk(self):
        with self.file_system("size=32k") as small:
            (small / "filler").write_bytes(bytes(28 << 10))
            done, weights = self.lost_log(small)
            self.assertIn("disk", done.stderr)
            self.assertTrue(weights.exists())

    @unittest.skipUnless(can_mount(), "skipped: cannot mount file systems")
    def test_curves_on_a_disk_that_becomes_full(self):
        """They end with a whole record; nothing else of the run is lost."""
        numbers, weights = self.dir / "m", self.dir / "w"
        with self.file_system("size=32k") as small:
            (small / "filler").write_bytes(bytes(16 << 10))
            done = self.ftexec("--progress=off", f"--log-dir={small}", f"--metrics={numbers}", f"--save-weights={weights}", steps=150)
            self.assertEqual((done.returncode, len(done.stderr.splitlines())), (74, 2), done.stderr)
            warning, status = done.stderr.splitlines()
            self.assertIn("the run goes on, but TensorBoard's curves end here", warning)
            self.assertTrue(warning.startswith(status), status)
            self.assertIn(warning, (small / "rank0.log").read_text().splitlines())
            self.assertIn("step 150/150", (small / "rank0.log").read_text())
            points = [event for event in event_files.read(event_files.paths(small)[0]) if event.scalars]
            self.assertEqual([point.step for point in points], list(range(len(points))))
            self.assertTrue(10 < len(points) < 100, len(points))
        self.assertEqual(len(metrics(numbers)), 150)
        self.assertTrue(weights.exists())

    @unittest.skipUnless(can_mount(), "skipped: cannot mount file systems")
    def test_a_folder_that_gets_no_curves(self):
        with self.file_system("size=64k,nr_inodes=2") as small:  # itself and the log
            (small / "rank0.log").touch()
            self.refused(self.ftexec(f"--log-dir={small}"), "events.out.tfevents.")

    @unittest.skipUnless(can_mount(), "skipped: cannot mount file systems")
    def test_logs_of_ftrun_on_a_full_disk(self):
        with self.file_system("size=32k") as small:
            script = "for i in $(seq 400); do echo $i; printf '%01000d\\n' 0; done"
            done = run("ftrun", "--standalone", f"--log-dir={small}", "bash", "-c", script)
            self.assertEqual((done.returncode, len(done.stderr.splitlines())), (74, 1), done.stderr)
            self.assertIn("rank_0.log", done.stderr)
            self.assertIn("the rest of this log is lost", done.stderr)
            self.assertIn("\n400\n", done.stdout)
            done = run("ftrun", "--standalone", f"--log-dir={small}", "bash", "-c", f"{script}; exit 3")
            self.assertEqual(done.returncode, 3)  # what failed matters more

    def test_limited_files(self):
        """SIGXFSZ would end the programs without a word."""
        plan = self.plan("gpt2", "full_shard")
        line = f"{BIN}/ftexec {plan} --data={self.text} --steps=2 --progress=off"
        for command, word in ((f"{line} --save-weights={self.dir}/w", "ulimit -f"), (f"{line} --trace={self.dir}/t --trace-steps=2", "ulimit -f"),
                              (f"{BIN}/ftc model llama -o {self.dir}/m", "ulimit -f"),
                              (f"{BIN}/ftc compile {plan.with_suffix('.mlir')} --strategy=zero1 -o {self.dir}/p", "ulimit -f")):
            with self.subTest(command=command):
                done = run("bash", "-c", f"ulimit -f 4; {command}")
                self.assertEqual((done.returncode, len(done.stderr.splitlines())), (74, 1), done.stderr)
                self.assertIn(word, done.stderr)
                self.assertEqual(list(self.dir.iterdir()), [])

    def test_limited_shared_memory(self):
        done = run("bash", "-c", f"ulimit -f 4; {BIN}/ftrun --standalone --nproc-per-node=2 {BIN}/ftexec "
                   f"{self.plan('gpt2', 'full_shard')} --data={self.text} --steps=2 --comm-backend=shm --threads=1")
        self.assertEqual(done.returncode, 74, done.stderr)
        self.assertRegex(done.stderr, r"(?m)^\[rank 0\] ftexec: rank 0: shared memory of \d+ bytes is larger than a file may be \(ulimit -f\)")

    def test_ftrun_gives_its_ranks_the_signal_back(self):
        script = f"ulimit -f 1; head -c 9999 /dev/zero > {self.dir}/zeros"
        done = run("ftrun", "--standalone", "bash", "-c", script)
        self.assertIn("153", str(done.returncode) + done.stderr)  # 128 + SIGXFSZ, as without ftrun


if __name__ == "__main__":
    unittest.main()
