"""ftexec --check: room in memory, on disks and in /dev/shm, state to go on from, pairs of options; nothing stays behind."""

import resource
import shutil
import subprocess
import unittest

from checking import ROW, Checking
from covering import covering_rows
from harness import BIN, SOURCE, environment, run


def can_mount():
    """Whether this process may give a child file systems of its own."""
    try:
        return subprocess.run(["unshare", "--mount", "mount", "-t", "tmpfs", "tmpfs", "/mnt"], capture_output=True, timeout=10,
                              check=False).returncode == 0
    except OSError:
        return False


class Room(Checking):
    def test_memory_is_what_the_plan_takes(self):
        plan = self.plan("gpt2", "full_shard")
        explained = self.explain(plan, 2)
        self.assertEqual(explained["batch_bytes"], 2 * explained["batch"] * explained["seq_len"] * 4)  # tokens and targets
        wanted = 2 * (explained["arena_bytes"] + explained["communicator_bytes"]["shm"] + explained["batch_bytes"])
        table = self.checked(plan, world=2)
        self.assertIn(f"ranks 0,1 will take {wanted / 2 ** 20:.1f} MiB", table["memory"][1])
        self.assertIn(f"ranks 0,1 will take {2 * explained['communicator_bytes']['shm'] / 2 ** 20:.1f} MiB", table["/dev/shm"][1])
        for kind, snapshot in (("sharded", explained["snapshot_bytes"]), ("local", explained["snapshot_bytes_local"])):
            saving = self.checked(plan, f"--checkpoint-dir={self.dir / 'saved'}", f"--state-dict-type={kind}", world=2)
            self.assertIn(f"will take {(wanted + 2 * snapshot) / 2 ** 20:.1f} MiB", saving["memory"][1])

    def test_too_little_memory_and_disk(self):
        """A model that no machine of ours holds: nothing of it is ever allocated."""
        source, plan = self.dir / "model.mlir", self.shared / "70b.bin"
        self.check("ftc", "model", "llama3-70b", "-o", source)
        self.check("ftc", "compile", source, "--strategy=full_shard", "-o", plan)
        source.unlink()
        table = self.checked(plan, f"--checkpoint-dir={self.dir / 'saved'}", "--state-dict-type=sharded",
                             "--data-format=text", world=2, status=74)
        verdict, text = table["memory"]
        self.assertEqual(verdict, "FAIL", text)
        self.assertRegex(text, r"memory .* on .*: [\d.]+ \wiB free; ranks 0,1 will take \d\d\d\d+\.\d GiB; needed: \d+\.\d GiB; do: ")
        if shutil.disk_usage(self.dir).free < 800e9:  # weights and two moments
            self.assertEqual(table["disk"][0], "FAIL", table["disk"])
            self.assertRegex(table["disk"][1], r"free for --checkpoint-dir 1 checkpoint of 78\d\.\d GiB; needed: 78")
        self.assertIn("not measured", table["links"][1])

    def limited(self, command, **limits):
        def limit():
            for name, most in limits.items():
                resource.setrlimit(getattr(resource, name), (most, most))

        return subprocess.run(list(map(str, command)), capture_output=True, text=True, timeout=120, env=environment(),
                              stdin=subprocess.DEVNULL, preexec_fn=limit, check=False)

    def test_limits_of_the_process(self):
        plan = self.plan("gpt2", "full_shard")
        large = self.plan("gpt2", "full_shard", "--hidden=512", "--layers=12", "--batch=160")
        arena = self.explain(large, 1)["arena_bytes"]
        self.assertGreater(arena, 2 << 30)  # far beyond what libraries and threads reserve of addresses
        done = self.limited(self.command(large, "--threads=1"), RLIMIT_AS=arena)
        self.assertEqual(done.returncode, 74, done.stdout + done.stderr)
        verdict, text = self.table(done.stdout)["memory"]
        self.assertEqual(verdict, "FAIL")
        self.assertIn("limit on addresses (ulimit -v) of rank 0", text)
        done = self.limited(self.command(plan, f"--checkpoint-dir={self.dir / 'saved'}"), RLIMIT_FSIZE=100_000)
        self.assertEqual(done.returncode, 74, done.stdout + done.stderr)
        self.assertIn("(ulimit -f)", self.table(done.stdout)["disk"][1])
        self.assertEqual(list(self.dir.iterdir()), [])

    @unittest.skipUnless(can_mount(), "skipped: may not mount a small file system")

    def test_small_file_systems(self):
        plan, small = self.plan("gpt2", "full_shard"), self.dir / "small"
        small.mkdir()

        def on(size, where, *options):
            mount = f'mount -t tmpfs -o size={size} tmpfs {where} && exec "$@"'
            return run("unshare", "--mount", "/bin/sh", "-c", mount, "sh", *self.command(plan, *options, world=2))

        done = on("300k", small, f"--checkpoint-dir={small}/saved", "--steps=10")
        self.assertEqual(done.returncode, 74, done.stdout + done.stderr)
        table = self.table(done.stdout)
        self.assertEqual((table["disk"][0], table["checkpoints"][0]), ("FAIL", "ok"), table)
        self.assertRegex(table["disk"][1], r"[\d.]+ KiB free for --checkpoint-dir 1 checkpoint of 1\.4 MiB; needed: 1\.4 MiB")
        # Room for the last one, not for all: the run would warn, and so does the check.
        for options, verdict in ((["--save-every=1"], "warn"), (["--save-every=1", "--keep=1"], "ok"), ([], "ok")):
            done = on("4m", small, f"--checkpoint-dir={small}/saved", "--steps=10", *options)
            self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
            self.assertEqual(self.table(done.stdout)["disk"][0], verdict, done.stdout)
        done = on("1m", "/dev/shm")
        self.assertEqual(done.returncode, 74, done.stdout + done.stderr)
        verdict, text = self.table(done.stdout)["/dev/shm"]
        self.assertEqual(verdict, "FAIL")
        self.assertIn("docker run --shm-size=1g", text)
        done = on("1m", "/dev/shm", "--comm-backend=gloo")
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)

    def test_a_folder_that_ranks_do_not_share(self):
        done = self.shell(self.plan("gpt2", "full_shard"), f"mkdir -p {self.dir}/$RANK; set -- --checkpoint-dir={self.dir}/$RANK")
        self.assertEqual(done.returncode, 65, done.stdout + done.stderr)
        self.assertIn("rank 1 does not see what rank 0 wrote there", self.table(done.stdout)["checkpoints"][1])
        self.assertEqual(sorted(str(p.relative_to(self.dir)) for p in self.dir.rglob("*")), ["0", "1"])

    def test_resuming(self):
        plan, saved = self.plan("gpt2", "full_shard"), self.dir / "saved"
        table = self.checked(plan, f"--checkpoint-dir={saved}", "--resume=auto", world=2)
        self.assertEqual(table["resume"], ("ok", "no checkpoint is there to go on from: the run begins"))
        self.train(plan, 2, f"--checkpoint-dir={saved}", "--save-every=2", steps=4)
        options = (f"--checkpoint-dir={saved}", "--resume=auto")
        table = self.checked(plan, *options, world=2)
        self.assertEqual(table["resume"][0], "ok")
        self.assertIn("step-00000004' after 4 steps", table["resume"][1])
        table = self.checked(plan, *options, "--steps=9", "--seed=7", world=2)
        self.assertEqual(table["resume"][0], "warn")
        self.assertIn("not as it was: steps 9 (was 4), seed 7 (was 42)", table["resume"][1])
        weights = saved / "step-00000004/model.safetensors"
        damaged = bytearray(weights.read_bytes())
        damaged[-100] ^= 1
        weights.write_bytes(damaged)
        table = self.checked(plan, *options, world=2)
        self.assertEqual(table["resume"][0], "warn")
        self.assertIn("step-00000002' after 2 steps", table["resume"][1])
        table = self.checked(plan, f"--resume={saved}/step-00000004", world=2, status=65)
        self.assertEqual(table["resume"][0], "FAIL")
        self.assertNotEqual(table["all_gather over shard"][0], "FAIL")
        self.checked(plan, f"--resume={saved}/step-00000007", world=2, status=74)
        table = self.checked(self.plan("llama", "full_shard"), *options, world=2, status=65)
        self.assertEqual(table["resume"][0], "FAIL")

    def test_options_in_pairs(self):
        start = self.shared / "start.safetensors"
        self.check("ftexec", self.plan("gpt2", "no_shard"), f"--data={self.text}", "--steps=0", f"--save-weights={start}")
        start_options = {"": [], "init": [f"--init={start}"], "resume": ["--resume=auto", f"--checkpoint-dir={self.dir}/c"]}
        options = {
            "world": (1, 2),
            "strategy": ("no_shard", "zero1", "full_shard"),
            "settings": ((), ("--micro-steps=3",), ("--mixed-precision=bf16",), ("--offload=optimizer,parameters",)),
            "start": tuple(start_options),
            "outputs": ((), ("metrics",), ("log-dir",), ("trace", "save-weights")),
            "backend": ("auto", "gloo"),
            "more": ((), (f"--eval-data={self.text}", "--eval-every=2"), ("--steps=5", "--lr-schedule=cosine"), ("--async-save=on",)),
        }
        for row in covering_rows(options):
            if row["more"] == ("--async-save=on",) and row["start"] != "resume":
                row["more"] = ()
            with self.subTest(**row):
                plan = self.compiled(row["strategy"], row["settings"])
                outputs = [f"--{name}={self.dir}/{name}" for name in row["outputs"]]
                table = self.checked(plan, *start_options[row["start"]], *outputs, f"--comm-backend={row['backend']}", *row["more"],
                                     world=row["world"])
                self.assertEqual("init" in table, row["start"] == "init")
                self.assertEqual("resume" in table, row["start"] == "resume")

    def compiled(self, strategy, settings):
        key = ("compiled", strategy, settings)
        if key not in self.plans:
            source, target = self.shared / "m.mlir", self.shared / f"compiled-{len(self.plans)}.bin"
            self.check("ftc", "model", "gpt2", "-o", source)
            self.check("ftc", "compile", source, f"--strategy={strategy}", *settings, "-o", target)
            self.plans[key] = target
        return self.plans[key]

    def test_a_log_is_not_added_to(self):
        logs = self.dir / "logs"
        self.train(self.plan("gpt2", "full_shard"), 2, f"--log-dir={logs}", steps=2)
        self.checked(self.plan("gpt2", "full_shard"), f"--log-dir={logs}", world=2)
        done = run(*self.command(self.plan("gpt2", "full_shard"), f"--log-dir={logs}", "--init=/absent", world=2))
        self.assertEqual(done.returncode, 74)
        self.assertNotIn("absent", (logs / "rank0.log").read_text() + (logs / "rank1.log").read_text())

    def test_standard_output_that_nobody_takes(self):
        done = run("sh", "-c", f"{BIN}/ftexec {self.plan('gpt2', 'full_shard')} --data={self.text} --check > /dev/full")
        self.assertEqual((done.returncode, len(done.stderr.splitlines())), (74, 1), done.stderr)

    def test_the_documented_example_has_the_rows(self):
        """docs/check.md shows a real table: each of its checks is one that ftexec prints."""
        text = (SOURCE / "docs/check.md").read_text().split("(The link is")[0]
        shown = [match[2] for match in map(ROW.match, (line.strip() for line in text.splitlines())) if match]
        table = self.checked(self.plan("gpt2", "full_shard"), f"--checkpoint-dir={self.dir / 'saved'}", world=2)
        self.assertEqual(sorted(shown), sorted(table))


if __name__ == "__main__":
    unittest.main()
