"""What a user sees: dumps, progress, metrics, traces."""

import json
import os
import pty
import re
import signal
import subprocess
import unittest

from harness import BIN, MODELS, STRATEGIES, EndToEnd, environment, metrics, run


class Output(EndToEnd):
    def model(self, name):
        source = self.dir / f"{name}.mlir"
        self.check("ftc", "model", name, "-o", source)
        return source

    def test_dumps_parse_again(self):
        for name in MODELS:
            source = self.model(name)
            for strategy in STRATEGIES:
                with self.subTest(model=name, strategy=strategy):
                    text = self.check("ftc", "compile", source, f"--strategy={strategy}", "--dump").stdout
                    self.assertEqual(text, self.check("ftc", "--dump", source, f"--strategy={strategy}").stdout)
                    dump = self.dir / "dump.mlir"
                    dump.write_text(text)
                    again = self.check("ft-opt", dump).stdout
                    dump.write_text(again)
                    self.assertEqual(self.check("ft-opt", dump).stdout, again)

    def test_every_stage_can_be_dumped(self):
        source, folder = self.model("gpt2"), self.dir / "stages"
        self.check("ftc", "compile", source, "--strategy=full_shard", f"--dump-dir={folder}", "-o", self.dir / "plan.bin")
        files = sorted(folder.iterdir())
        self.assertGreaterEqual(len(files), 6)
        for file in files:
            self.check("ft-opt", file)
        both = self.check("ftc", "compile", source, "--strategy=full_shard", "--dump=autodiff,shard").stdout
        self.assertIn("ft.gradient", both)
        self.assertIn("ft.gather", both)

    def test_full_shard_reads_as_gather_use_release(self):
        source = self.model("gpt2")
        text = self.check("ftc", "compile", source, "--strategy=full_shard", "--dump=shard").stdout
        step = text[text.index("func.func @train_step"):]
        step = step[:step.index("\n  }")]  # @eval_step gathers too
        for unit in ("transformer.h.0", "transformer.h.1"):
            order = re.findall(rf"ft\.(gather|release|reduce_scatter|update)\b[^\n]*{re.escape(unit)}\b", step)
            self.assertEqual(order, ["gather", "release", "gather", "release", "reduce_scatter", "update"])

    def test_plans_are_byte_stable(self):
        source = self.model("llama")
        for name in ("a.bin", "b.bin"):
            self.check("ftc", "compile", source, "--strategy=full_shard", "-o", self.dir / name)
        self.assertEqual((self.dir / "a.bin").read_bytes(), (self.dir / "b.bin").read_bytes())

    def test_metrics(self):
        out = self.dir / "m.jsonl"
        self.check("ftexec", self.plan("gpt2", "full_shard"), f"--data={self.text}", "--steps=3", "--lr=0.001", f"--metrics={out}")
        rows = metrics(out)
        for row in rows:
            for key in ("step", "loss", "grad_norm", "lr", "tokens_per_s", "step_ms", "arena_bytes"):
                self.assertIn(key, row)
            self.assertEqual(row["lr"], 0.001)
            self.assertEqual(float(repr(row["loss"])), row["loss"])
        self.assertEqual(rows[0]["bytes"], self.explain(self.plan("gpt2", "full_shard"), 1)["bytes"])
        self.assertEqual(sum(rows[0]["bytes"].values()), rows[0]["arena_bytes"])
        self.assertNotIn("bytes", rows[1])

    def test_without_steps_a_run_is_one_pass_over_the_data(self):
        out = self.dir / "m.jsonl"
        self.check("ftexec", self.plan("gpt2", "no_shard"), f"--data={self.text}", f"--metrics={out}", "--progress=off")
        sequences = (self.text.stat().st_size - 1) // 64
        self.assertEqual(len(metrics(out)), -(-sequences // 4))

    def test_progress_lines(self):
        plan = self.plan("gpt2", "full_shard")
        plain = self.check("ftexec", plan, f"--data={self.text}", "--steps=3").stdout
        self.assertNotIn("\r", plain)
        self.assertIn("loss", plain)
        self.assertEqual(self.check("ftexec", plan, f"--data={self.text}", "--steps=3", "--progress=off").stdout.count("loss"), 0)
        leader, follower = pty.openpty()
        process = subprocess.Popen([BIN / "ftexec", plan, f"--data={self.text}", "--steps=30"], stdout=follower, stderr=follower,
                                   stdin=subprocess.DEVNULL, env=environment())
        os.close(follower)
        screen = b""
        while True:
            try:
                chunk = os.read(leader, 4096)
            except OSError:
                break
            if not chunk:
                break
            screen += chunk
        os.close(leader)
        self.assertEqual(process.wait(), 0)
        self.assertIn(b"\r", screen)

    def test_trace(self):
        trace = self.dir / "trace.json"
        self.train(self.plan("gpt2", "full_shard"), 2, f"--trace={trace}", steps=4)
        files = sorted(self.dir.glob("trace*.json"))
        events = [e for file in files for e in (lambda t: t["traceEvents"] if isinstance(t, dict) else t)(json.loads(file.read_text()))]
        tracks = {(e["pid"], e["args"]["name"]) for e in events if e.get("name") == "thread_name"}
        for rank in (0, 1):
            for stream in ("compute", "gather", "reduce"):
                self.assertTrue(any(pid == rank and stream in name for pid, name in tracks), tracks)
        gathers = [e for e in events if e.get("ph") == "X" and e["name"].startswith("all_gather")]
        self.assertTrue(gathers and all(e["args"]["bytes"] > 0 for e in gathers))
        kernels = [e for e in events if e.get("ph") == "X" and e["cat"] in ("forward", "backward", "optimizer")]
        self.assertTrue(all(re.search(r"\w+\[[\d,]*\]", e["args"]["shapes"]) for e in kernels))
        product = next(e for e in kernels if e["name"].startswith("matmul") and e["cat"] == "forward")
        self.assertEqual(product["args"]["layer"], "transformer.h.0")
        # 4 sequences of 64 tokens, 64 wide, to queries, keys and values.
        self.assertRegex(product["args"]["shapes"], r"f32\[[\d,]*64\] f32\[64,192\] .*-> f32\[[\d,]*192\]")

    def test_progress_and_remarks_count_steps_alike(self):
        plan, out = self.plan("gpt2", "full_shard"), self.dir / "m.jsonl"
        done = self.check("ftexec", plan, f"--data={self.text}", "--steps=3", "--lr=1e30", "--max-bad-steps=100",
                          f"--metrics={out}")
        bad = [row["step"] + 1 for row in metrics(out) if row.get("skipped")]
        self.assertTrue(bad)
        self.assertEqual([int(n) for n in re.findall(r"step (\d+)/3: .*step not applied", done.stderr)], bad)
        self.assertEqual({int(n) for n in re.findall(r"step (\d+)/3  .*not applied", done.stdout)} - set(bad), set())

    def traced(self, path):
        """The events of streams in a trace, which has to be whole."""
        return [e for e in json.loads(path.read_text())["traceEvents"] if e["ph"] == "X"]

    def test_a_run_that_fails_leaves_its_trace(self):
        plan, trace, out = self.plan("gpt2", "full_shard"), self.dir / "t.json", self.dir / "m.jsonl"
        command = [BIN / "ftexec", plan, f"--data={self.text}", "--trace-steps=5", f"--trace={trace}", f"--metrics={out}",
                   "--progress=off"]
        for number in (signal.SIGTERM, signal.SIGINT):
            with self.subTest(signal=number):
                out.unlink(missing_ok=True)
                process = subprocess.Popen([*command, "--steps=1000000"], stdin=subprocess.DEVNULL, env=environment())
                while not out.exists() or len(out.read_bytes().splitlines()) < 6:
                    self.assertIsNone(process.poll())
                process.send_signal(number)
                self.assertEqual(process.wait(timeout=30), -number)
                self.assertTrue(self.traced(trace))
                trace.unlink()
        with self.subTest("NaN"):
            self.assertEqual(run(*command, "--steps=9", "--lr=1e30", "--max-bad-steps=1").returncode, 65)
            self.assertTrue(self.traced(trace))
            trace.unlink()
        with self.subTest("an error while it trains"):
            process = subprocess.Popen([*command[:-2], "--metrics=/dev/stdout", "--progress=off", "--steps=1000000"],
                                       stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment())
            while not process.stdout.readline().startswith(b'{"step":5,'):
                self.assertIsNone(process.poll())
            process.stdout.close()  # nobody reads the metrics any more
            said = process.stderr.read()
            process.stderr.close()
            self.assertEqual((process.wait(timeout=30), len(said.splitlines())), (74, 1), said)
            self.assertTrue(self.traced(trace))
        self.assertEqual([p.name for p in self.dir.iterdir() if ".tmp." in p.name], [])

    def test_ranks_that_fail_leave_their_traces(self):
        trace, out = self.dir / "t.json", self.dir / "m.jsonl"
        command = [BIN / "ftrun", "--standalone", "--nproc-per-node=2", BIN / "ftexec", self.plan("gpt2", "full_shard"),
                   f"--data={self.text}", f"--trace={trace}", f"--metrics={out}", "--progress=off"]
        done = run(*command, "--steps=9", "--lr=1e30", "--max-bad-steps=1")
        self.assertEqual(done.returncode, 65, done.stderr)
        self.assertEqual({e["pid"] for e in self.traced(trace)}, {0, 1})
        out.unlink()
        process = subprocess.Popen([*command, "--steps=1000000"], stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                                   env=environment())
        while not out.exists() or len(out.read_bytes().splitlines()) < 4:
            self.assertIsNone(process.poll())
        process.send_signal(signal.SIGTERM)
        process.wait(timeout=30)
        for rank in (0, 1):
            self.assertEqual({e["pid"] for e in self.traced(self.dir / f"t.rank{rank}.json")}, {rank})

    def test_outputs_do_not_replace_what_is_no_file(self):
        """Devices and pipes stay what they are; a link goes on pointing to its file."""
        source, pipe, link, target = self.model("gpt2"), self.dir / "pipe", self.dir / "link", self.dir / "target"
        os.mkfifo(pipe)
        reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
        self.addCleanup(os.close, reader)
        self.check("ftc", "model", "gpt2", "--layers=1", "--hidden=8", "--heads=1", "--seq=4", "-o", pipe)
        self.assertTrue(os.read(reader, 100).startswith(b"module"))
        self.assertTrue(pipe.is_fifo())
        target.write_text("old")
        link.symlink_to(target)
        self.check("ftc", "compile", source, "--strategy=no_shard", "-o", link)
        self.assertTrue(link.is_symlink())
        self.assertTrue(target.read_bytes().startswith(b"FTPLAN"))

    def test_outputs_do_not_overwrite_inputs_or_each_other(self):
        plan, data, same = self.dir / "plan.bin", self.dir / "data.txt", self.dir / "same"
        plan.write_bytes(self.plan("gpt2", "full_shard").read_bytes())
        data.write_bytes(self.text.read_bytes())
        (self.dir / "link.txt").symlink_to(data)
        for options in ([f"--save-weights={plan}"], [f"--metrics={self.dir}/link.txt"], [f"--trace={data}"],
                        [f"--save-weights={same}", f"--metrics={self.dir}/./same"]):
            with self.subTest(options=options):
                before = {path: path.read_bytes() for path in (plan, data)}
                done = run("ftexec", plan, f"--data={data}", "--steps=1", *options)
                self.assertEqual((done.returncode, len(done.stderr.splitlines())), (65, 1), done.stderr)
                self.assertIn("same file", done.stderr)
                self.assertEqual(before, {path: path.read_bytes() for path in (plan, data)})
        done = run("ftexec", plan, "--device=null", f"--trace={plan}")
        self.assertEqual((done.returncode, len(done.stderr.splitlines())), (65, 1), done.stderr)
        self.assertIn("same file", done.stderr)
        self.assertEqual(before, {path: path.read_bytes() for path in (plan, data)})

    def test_output_that_nobody_takes(self):
        """A full or a closed standard output is an error of ftc; ftexec goes on, and its files stay whole."""
        plan, weights = self.plan("gpt2", "full_shard"), self.dir / "w.safetensors"
        for command in (f"{BIN}/ftc dump {plan}", f"{BIN}/ftc explain {plan}", f"{BIN}/ftc verify {plan}",
                        f"{BIN}/ftc model gpt2", f"{BIN}/ftc model --list"):
            for out in (">/dev/full", ">&-"):
                with self.subTest(command=command, out=out):
                    done = run("sh", "-c", f"{command} {out}")
                    self.assertEqual((done.returncode, len(done.stderr.splitlines())), (74, 1), done.stderr)
            self.assertEqual(run("sh", "-c", f"{command} >&- 2>&-").returncode, 74)
        saved = []
        for out in (">/dev/full", ">&-", ">&- 2>&- <&-", ""):
            self.check("sh", "-c", f"{BIN}/ftexec {plan} --data={self.text} --steps=2 --save-weights={weights} {out}")
            saved.append(weights.read_bytes())
        self.assertEqual(saved, saved[-1:] * len(saved))
        absent = f"{BIN}/ftexec {plan} --data={self.dir}/absent >&- 2>&-"
        self.assertEqual(run("sh", "-c", absent).returncode, 74)

    def test_help_lists_every_flag(self):
        for program, flags in (("ftexec", ("--data", "--steps", "--device", "--threads", "--seed", "--lr", "--shuffle", "--init",
                                           "--save-weights", "--metrics", "--trace", "--progress")),
                               ("ftrun", ("--nproc-per-node", "--nnodes", "--node-rank", "--master-addr", "--master-port",
                                          "--max-restarts", "--log-dir"))):
            text = run(program, "--help").stdout
            for flag in flags:
                self.assertIn(flag, text)


if __name__ == "__main__":
    unittest.main()
