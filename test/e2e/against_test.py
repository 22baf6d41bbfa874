"""What a trace measured beside what the plan was reckoned to take: the same for a machine that is simulated, and sums that a trace has for one that is not."""

import json
import re
import statistics
import unittest

from harness import BIN, EndToEnd, metrics, run

STREAMS = ("compute", "gather", "reduce", "h2d", "d2h", "host_compute", "replica")


class Against(EndToEnd):
    def compiled(self, model, strategy, *options):
        source, target = self.dir / f"{model}.mlir", self.dir / f"{model}-{strategy}.bin"
        self.check("ftc", "model", model, "-o", source)
        self.check("ftc", "compile", source, f"--strategy={strategy}", *options, "-o", target)
        return target

    def against(self, plan, trace, *options):
        return json.loads(self.check("ftc", "explain", plan, f"--against={trace}", "--json", *options).stdout)

    def test_a_simulated_machine_takes_what_was_predicted(self):
        for model, strategy, options in (("llama", "full_shard", ["--micro-steps=3"]), ("gpt2", "zero1", ["--offload=optimizer", "--mixed-precision=bf16"]),
                                         ("mixtral", "hybrid_shard", ["--target=h100-ib", "--world-size=16", "--prefetch=auto"])):
            with self.subTest(model=model, strategy=strategy):
                plan, trace = self.compiled(model, strategy, *options), self.dir / "trace.json"
                self.check("ftexec", plan, "--device=null", "--steps=2", f"--trace={trace}", "--trace-steps=2")
                report = self.against(plan, trace)
                self.assertEqual((report["device"], report["ranks"], report["steps"], report["unmeasured"]), ("null", 1, 2, 0))
                for what in ("compute", "exposed"):
                    self.assertAlmostEqual(report[what]["predicted"], report[what]["median_rank"], delta=1e-6 + 1e-4 * report[what]["predicted"], msg=what)
                for one in report["classes"]:
                    # Events are in nanoseconds, of which each run of an instruction loses one.
                    self.assertAlmostEqual(one["seconds"]["predicted"], one["seconds"]["slowest_rank"], delta=2e-9 * one["runs"] + 1e-12, msg=one["class"])

    def test_a_run_is_paired_with_its_instructions(self):
        plan, trace, log = self.compiled("llama", "full_shard"), self.dir / "trace.json", self.dir / "log.jsonl"
        done = self.check("ftrun", "--standalone", "--nproc-per-node=2", BIN / "ftexec", plan, f"--data={self.text}", "--steps=20", "--threads=1", f"--trace={trace}",
                          "--trace-steps=8", "--progress=off", f"--metrics={log}")
        self.assertEqual(sum("predicted for cpu" in line for line in done.stdout.splitlines()), 1)
        report = self.against(plan, trace)
        self.assertEqual((report["device"], report["ranks"], report["steps"], report["steps_left_out"]), ("cpu", 2, 3, 5))
        self.assertEqual(report["mesh"], {"replica": 1, "shard": 2})
        # The same from the events themselves.
        events = [e for e in json.loads(trace.read_text())["traceEvents"] if e["ph"] == "X" and "step" in e["args"]]
        self.assertEqual({(e["args"]["program"], e["args"]["micro_step"]) for e in events}, {("train_step", 0)})
        names = {(e["pid"], e["tid"]): e["args"]["name"] for e in json.loads(trace.read_text())["traceEvents"] if e["name"] == "thread_name"}

        def matmuls(rank):
            of = {}
            for e in events:
                if e["pid"] == rank and e["cat"] != "wait" and e["name"] == "matmul" and e["args"]["step"] >= 5:
                    of.setdefault(e["args"]["sequence"], []).append(e["dur"] * 1e-6)
            return sum(statistics.median(each) for each in of.values()), len(of)
        (found,) = (one for one in report["classes"] if one["class"] == "matmul")
        sums = [matmuls(rank) for rank in (0, 1)]
        self.assertEqual(found["runs"], sums[0][1])
        self.assertAlmostEqual(found["seconds"]["slowest_rank"], max(s for s, _ in sums), delta=1e-9)
        self.assertAlmostEqual(found["seconds"]["median_rank"], statistics.mean(s for s, _ in sums), delta=1e-9)
        waits = [statistics.median(sum(e["dur"] for e in events if e["pid"] == rank and e["args"]["step"] == step and e["cat"] == "wait"
                                       and names[e["pid"], e["tid"]] == "compute") for step in (5, 6, 7)) * 1e-6 for rank in (0, 1)]
        self.assertAlmostEqual(report["exposed"]["slowest_rank"], max(waits), delta=1e-8)
        self.assertLessEqual(len(report["worst"]), 10)
        off = [abs(one["seconds"]["median_rank"] - one["seconds"]["predicted"]) for one in report["worst"]]
        self.assertEqual(off, sorted(off, reverse=True))
        # A step that was not traced is what metrics say of those behind the trace.
        untraced = [row["step_ms"] for row in metrics(log)][8:]
        self.assertIn(round(report["untraced_step"] * 1e3, 9), [round(ms, 9) for ms in untraced])
        text = self.check("ftc", "explain", plan, f"--against={trace}").stdout
        for words in ("exposed: compute waited", "by class, in a step", "furthest off", "reduce_scatter"):
            self.assertIn(words, text)

    def test_after_twenty_steps_the_kind_that_is_off_is_named(self):
        """Of machines that do one thing a thousand times as slowly, that; once, by rank 0, in a step that does not count."""
        for tflops, link, part, kind in ((0.00001, 10, "computation", "matmul"), (1, 0.0001, "exposed communication", "all_gather")):
            machine = self.dir / "slow.yaml"
            machine.write_text(f"version: 1\ndevice: cpu\nranks_per_node: 2\nmemory: {{gigabytes_per_s: 100}}\n"
                               f"compute:\n  fp32: {{tflops: {tflops}}}\n  bf16: {{tflops: 1}}\n  fp16: {{tflops: 1}}\nkernels: {{latency_us: 2}}\n"
                               f"links:\n  node: {{gigabytes_per_s: {link}, latency_us: 5}}\n"
                               "  network: {gigabytes_per_s: 1, latency_us: 50}\n"
                               "copies: {gigabytes_per_s: 5, latency_us: 5}\n")
            plan = self.compiled("gpt2", "full_shard", f"--target={machine}")
            done = self.check("ftrun", "--standalone", "--nproc-per-node=2", BIN / "ftexec", plan, f"--data={self.text}", "--steps=24", "--threads=1",
                              "--progress=off")
            (line,) = (line for line in done.stdout.splitlines() if "predicted for slow" in line)
            found = re.search(rf"a step takes ([\d.]+) ms \(median of steps 6 to 19\), .*; further off is {part}, [\d.]+ against [\d.]+ ms; "
                              rf"of all kinds of instructions {kind}, ([\d.]+) against ([\d.]+) ms in step 20$", line)
            self.assertTrue(found, line)
            step, measured, predicted = (float(value) for value in found.groups())
            self.assertGreater(measured, 0)
            self.assertLess(measured, 20 * step)
            self.assertGreater(predicted, measured)

    def test_a_run_that_goes_on_is_traced_from_its_first_step(self):
        plan, trace = self.compiled("gpt2", "no_shard"), self.dir / "trace.json"
        keep = [f"--checkpoint-dir={self.dir / 'kept'}", "--save-every=4", "--threads=1", "--progress=off", f"--data={self.text}"]
        self.check("ftexec", plan, "--steps=4", *keep)
        self.check("ftexec", plan, "--steps=8", "--resume=auto", f"--trace={trace}", "--trace-steps=2", *keep)
        self.assertEqual({e["args"]["step"] for e in json.loads(trace.read_text())["traceEvents"] if "step" in e.get("args", {})}, {4, 5})

    def test_an_emulated_link_is_told(self):
        plan, trace = self.compiled("gpt2", "full_shard"), self.dir / "trace.json"
        done = self.check("ftrun", "--standalone", "--nproc-per-node=2", BIN / "ftexec", plan, f"--data={self.text}", "--steps=22", "--threads=1",
                          "--progress=off", "--emulate-link=5,100", f"--trace={trace}", "--trace-steps=2")
        link = "emulated link of 5 Gb/s and 100 us"
        self.assertTrue(any("predicted for cpu" in line and line.endswith(f"; over an {link}") for line in done.stdout.splitlines()), done.stdout)
        text = self.check("ftc", "explain", plan, f"--against={trace}").stdout
        self.assertIn(f"measured over an {link}: predicted so only where the target was calibrated over it", text)
        self.assertEqual(json.loads(self.check("ftc", "explain", plan, f"--against={trace}", "--json").stdout)["emulated_link"], link)
        page = self.dir / "report.html"
        self.check("ftc", "report", plan, "--world-size=2", f"--trace={trace}", "-o", page)
        self.assertIn(link, page.read_text())

    def test_refusals(self):
        plan, other, trace = self.compiled("llama", "full_shard"), self.compiled("llama", "zero1"), self.dir / "trace.json"
        self.check("ftexec", plan, "--device=null", f"--trace={trace}")

        def refused(words, *command, status=65):
            done = run("ftc", "explain", *command)
            self.assertEqual(done.returncode, status, done.stderr)
            self.assertEqual(len(done.stderr.splitlines()), 1, done.stderr)
            self.assertIn(words, done.stderr)
        refused("is a trace of plan", other, f"--against={trace}")
        refused("is a trace of a simulated cpu, not of h100: give a --target that is", plan, f"--against={trace}", "--target=h100")
        shipped = self.compiled("llama", "no_shard", "--target=h100")
        self.check("ftexec", shipped, "--device=null", f"--trace={self.dir / 'h100.json'}")
        self.check("ftc", "explain", shipped, f"--against={self.dir / 'h100.json'}", "--target=h100-ib")  # the same machine
        refused("leave out --world-size", plan, f"--against={trace}", "--world-size=2", status=2)
        refused("not a model", self.dir / "x.mlir", f"--against={trace}", status=2)
        text = trace.read_text()
        lines = text.splitlines()
        bad = self.dir / "bad.json"
        for words, content in (("does not begin like one", "{}"), ("it ends in the middle", text[:len(text) // 2].rpartition("\n")[0] + "\n"),
                               ("it ends in the middle", text[:len(text) // 2].rpartition("\n")[0] + '\n{"ph":"X","pi'),
                               (":3: this is no trace of ftexec: an event", "\n".join([*lines[:2], "nonsense,", *lines[2:]])),
                               ("does not say of which plan", "\n".join(line for line in lines if "ft_run" not in line)),
                               ("bad.json: the trace has instruction", text.replace('"program":"train_step"', '"program":"train_stop"')),
                               ("of program 'eval_step', which does not run in a step", text.replace('"program":"train_step"', '"program":"eval_step"', 1)),
                               ("of program 'train_stop', the plan has none", text.replace('"program":"train_step"', '"program":"train_stop"')),
                               ("instruction 99999", text.replace('"sequence":1,', '"sequence":99999,', 1)),
                               ("does not say shard", text.replace('"shard":', '"shards":')),
                               ("its mesh has too many ranks", text.replace('"replica":1,"shard":1', '"replica":16777216,"shard":16777216')),
                               ("does not say shard", text.replace('"shard":1', '"shard":1e300')),
                               ("step and micro_step that can be", text.replace('"step":0', '"step":-5', 1)),
                               ("step and micro_step that can be", text.replace('"step":0', '"step":18446744073709551615', 1)),
                               ("ts, dur and tid that can be", re.sub(r'"dur":[0-9.]+(?=,"args":{[^}]*"step")', '"dur":-5', text, count=1)),
                               ("neither cpu nor cuda nor null", text.replace('"device":"null"', '"device":"tpu"')),
                               ("rank 3 is none of its mesh of 1", text.replace('"pid":0', '"pid":3')),
                               ("rank 0 begins twice", "\n".join(line for one in lines for line in [one] * (1 + ("ft_run" in one)))),
                               ("rank 1 has events, and does not say", re.sub(r'"pid":0(?=[^\n]*"step")', '"pid":1', text, count=1)),
                               ("ts, dur and tid that can be", re.sub(r'"dur":[0-9.]+(?=,"args":{[^}]*"step")', '"dur":1e308', text, count=1)),
                               ("an event is no object", "\n".join([*lines[:2], '{"ph":"X","pid":1099511627776,"name":"x"},', *lines[2:]])),
                               ("it has no step", "\n".join(line for line in lines if '"ph":"X"' not in line))):
            self.assertNotEqual(content, text, words)
            bad.write_text(content)
            refused(words, plan, f"--against={bad}")
        # Deep brackets end where they stand.
        bad.write_text("\n".join([*lines[:2], '{"ph":"X","pid":0,"name":"x","args":{"a":' + "[" * 400000 + "]" * 400000 + "}},", *lines[2:]]))
        self.assertIn(run("ftc", "explain", plan, f"--against={bad}").returncode, (0, 65))
        refused("nowhere.json", plan, f"--against={self.dir / 'nowhere.json'}", status=74)


if __name__ == "__main__":
    unittest.main()
