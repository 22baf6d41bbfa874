"""`ftc report`: one page that has the numbers of `ftc explain`, and nothing of the machine that it was written on. What the page does in
a browser is tested in test/browser."""

import getpass
import json
import re
import socket
import unittest

from harness import BIN, STRATEGIES, EndToEnd, environment, run


def document(page):
    found = re.findall(r'<script id="document" type="application/json">(.*?)</script>', page, re.DOTALL)
    assert len(found) == 1, len(found)
    return json.loads(found[0])


class Report(EndToEnd):
    def report(self, *arguments):
        out = self.dir / "report.html"
        done = self.check("ftc", "report", *arguments, "-o", out)
        self.assertEqual((done.stdout, done.stderr), ("", ""))
        return out.read_text()

    def trained(self, plan, steps=8, *options):
        metrics, trace = self.dir / "metrics.jsonl", self.dir / "trace.json"
        self.check("ftrun", "--nproc-per-node=2", "--standalone", BIN / "ftexec", plan, f"--data={self.text}", f"--steps={steps}",
                   f"--metrics={metrics}", f"--trace={trace}", "--progress=off", *options)
        return metrics, trace

    def refused(self, *arguments, words, status=65):
        out = self.dir / "none.html"
        done = run("ftc", "report", *arguments, "-o", out)
        self.assertEqual(done.returncode, status, done.stderr)
        self.assertEqual(len(done.stderr.splitlines()), 1, done.stderr)
        for word in words:
            self.assertIn(word, done.stderr)
        self.assertFalse(out.exists())

    # --- its numbers ---

    def test_numbers_are_those_of_explain(self):
        cases = [(model, strategy, options) for model, strategy in
                 [("gpt2", "full_shard"), ("llama", "no_shard"), ("free_transformer", "hybrid_shard"), ("gpt2", "zero1")]
                 for options in ((), ("--target=h100-ib",), ("--device=cuda",))]
        for model, strategy, options in cases:
            with self.subTest(model=model, strategy=strategy, options=options):
                plan = self.plan(model, strategy)
                one = document(self.report(plan, "--world-size=8", *options))["plans"][0]
                self.assertEqual(one["explain"], self.explain(plan, 8, *options))
                schedule = json.loads(self.check("ftc", "explain", plan, "--world-size=8", "--schedule", "--json", *options).stdout)
                runs = [program for program in one["programs"] if program["runs"] > 0]
                self.assertEqual([program["name"] for program in runs], [program["name"] for program in schedule["programs"]])
                self.assertAlmostEqual(sum(one["limits"]["seconds"].values()), schedule["seconds"]["total"], delta=1e-9)
                for program, of_schedule in zip(runs, schedule["programs"]):
                    for row in of_schedule["rows"]:
                        begin = program["instructions"]["begin"][row["position"]]
                        self.assertAlmostEqual(begin / 1e9, row["begin"], delta=1e-9)

    def test_launches_are_a_part_of_their_own(self):
        """What `compute` waits for the host is launching, the rest of what it waits for is of other streams."""
        machine = self.dir / "late.yaml"
        machine.write_text("version: 1\ndevice: cpu\nranks_per_node: 2\nmemory: {gigabytes_per_s: 100}\n"
                           "compute:\n  fp32: {tflops: 1}\n  bf16: {tflops: 1}\n  fp16: {tflops: 1}\nkernels: {latency_us: 2}\n"
                           "links:\n  node: {gigabytes_per_s: 1, latency_us: 50}\n  network: {gigabytes_per_s: 1, latency_us: 50}\n"
                           "copies: {gigabytes_per_s: 5, latency_us: 5}\nstack: {launch_us: 60}\n")
        for strategy in ("full_shard", "no_shard"):
            one = document(self.report(self.plan("gpt2", strategy), "--world-size=2", f"--target={machine}"))["plans"][0]
            parts, step = one["limits"]["seconds"], one["explain"]["step"]
            self.assertGreater(step["launch_seconds"], 0)
            self.assertAlmostEqual(parts["launch"], step["launch_seconds"], delta=1e-9)
            others = sum(parts[key] for key in parts if key not in ("arithmetic", "memory", "launch", "tail"))
            self.assertAlmostEqual(others, step["exposed_seconds"], delta=1e-9)
            self.assertAlmostEqual(sum(parts.values()), step["seconds"], delta=1e-9)

    def test_the_peak_is_in_the_columns(self):
        """What the page stacks up: the most bytes that live at once, and by class."""
        for strategy in STRATEGIES:
            with self.subTest(strategy=strategy):
                data = document(self.report(self.plan("gpt2", strategy), "--world-size=4"))
                one = data["plans"][0]
                buffers, peak = one["buffers"], one["peak"]["device"]
                sums = dict.fromkeys((kind["key"] for kind in data["classes"]), 0)
                for i, size in enumerate(buffers["bytes"]):
                    lives = buffers["persistent"][i] or (buffers["program"][i] == peak["program"] and
                                                         buffers["first"][i] <= peak["instruction"] <= buffers["last"][i])
                    if lives and buffers["space"][i] == 0:
                        sums[data["classes"][buffers["class"][i]]["key"]] += size
                self.assertEqual({**sums, "padding": one["explain"]["bytes"]["padding"]}, one["explain"]["bytes"])
                self.assertEqual(sum(sums.values()), one["explain"]["max_live_bytes"])

    def test_scaling_rows_are_explained_for_their_ranks(self):
        plan, source, meshed = self.plan("gpt2", "hybrid_shard"), self.dir / "model.mlir", self.dir / "meshed.bin"
        self.check("ftc", "model", "gpt2", "-o", source)
        self.check("ftc", "compile", source, "--strategy=hybrid_shard", "--world-size=8", "--mesh=replica:4,shard:2", "-o", meshed)
        for subject in (plan, meshed):
            one = document(self.report(subject, "--world-size=16", "--world-sizes=1,2,4,8,12,32", "--target=h100-ib"))["plans"][0]
            self.assertEqual([row["world_size"] for row in one["scaling"]["rows"]], [1, 2, 4, 8, 16, 32])
            self.assertEqual([row["world_size"] for row in one["scaling"]["left_out"]], ["12"])
            for row in one["scaling"]["rows"]:
                explained = self.explain(subject, row["world_size"], "--target=h100-ib")
                self.assertEqual(row["arena_bytes"], explained["arena_bytes"])
                self.assertEqual(row["seconds"], explained["step"]["seconds"])
                self.assertEqual(row["tokens_per_s_per_rank"], explained["step"]["tokens_per_s_per_rank"])
        usual = document(self.report(plan, "--world-size=16"))["plans"][0]["scaling"]
        self.assertEqual(usual["rows"][-1]["world_size"], 1024)

    def test_compared(self):
        plans = [self.plan("gpt2", "full_shard"), self.plan("gpt2", "no_shard")]
        data = document(self.report(*plans, "--compare", "--world-size=4"))
        self.assertEqual([one["name"] for one in data["plans"]], [plan.name for plan in plans])
        for plan, one in zip(plans, data["plans"]):
            self.assertEqual(one["explain"], self.explain(plan, 4))
        source = self.dir / "model.mlir"
        self.check("ftc", "model", "gpt2", "-o", source)
        data = document(self.report(source, "--compare=zero1,hybrid_shard", "--world-size=4", "--micro-steps=2"))
        self.assertEqual([(one["name"], one["explain"]["micro_steps"]) for one in data["plans"]], [("zero1", 2), ("hybrid_shard", 2)])
        data = document(self.report(source, "--strategy=full_shard", "--mesh=shard:4"))
        self.assertEqual(data["plans"][0]["name"], "model.mlir")
        self.assertEqual(data["plans"][0]["explain"]["mesh"], {"replica": 1, "shard": 4})

    def test_runs(self):
        for options in (("full_shard", "--micro-steps=3", "--remat=full"), ("full_shard", "--offload=optimizer:step", "--micro-steps=2"),
                        ("no_shard", "--mixed-precision=fp16"), ("zero1", "--gather-bucket-mb=1", "--accumulate=last"),
                        ("shard_grad_op", "--offload=optimizer,parameters,activations", "--optimizer=muon")):
            with self.subTest(options=options):
                self.a_run(*options)

    def a_run(self, strategy, *options):
        source, plan = self.dir / "model.mlir", self.dir / "plan.bin"
        self.check("ftc", "model", "gpt2", "-o", source)
        self.check("ftc", "compile", source, f"--strategy={strategy}", *options, "-o", plan)
        metrics, trace = self.trained(plan, 8, f"--eval-data={self.text}", "--eval-every=4")
        data = document(self.report(plan, "--world-size=2", f"--run={metrics}", f"--trace={trace}"))
        lines = [json.loads(line) for line in metrics.read_text().splitlines()]
        rows, evaluations = [line for line in lines if "loss" in line], [line for line in lines if "eval_loss" in line]
        self.assertEqual(data["run"]["step"], list(range(8)))
        for name in ("loss", "grad_norm", "lr", "tokens_per_s", "step_ms", "exposed_ms"):
            self.assertEqual(data["run"]["columns"][name], [row[name] for row in rows])
        self.assertEqual(data["run"]["evaluated"], [3, 7])
        self.assertEqual(data["run"]["eval_loss"], [row["eval_loss"] for row in evaluations])
        self.assertEqual(data["run"]["measured"]["step_ms"], sorted(row["step_ms"] for row in rows[5:])[1])
        self.assertAlmostEqual(data["run"]["predicted"]["step_ms"] / 1e3, data["plans"][0]["explain"]["step"]["seconds"], places=12)
        # Every instruction that takes time has one: not those on matrices of which two ranks have no more.
        programs, measured = data["plans"][0]["programs"], data["trace"]["measured"]
        found = set(zip(measured["program"], measured["instruction"]))
        expected = {(p, i) for p, program in enumerate(programs) if program["runs"] > 0
                    for i, opcode in enumerate(program["instructions"]["opcode"]) if opcode not in (4, 5)  # waits, releases
                    and (opcode != 0 or program["instructions"]["end"][i] > program["instructions"]["begin"][i])}
        self.assertEqual(found, expected)
        self.assertEqual(data["trace"]["ranks"], 2)
        self.assertGreater(data["trace"]["steps"], 1)
        self.assertTrue(all(one >= 0 for one in measured["median"]))
        # What `ftc explain --against` says, in another order.
        against = json.loads(self.check("ftc", "explain", plan, f"--against={trace}", "--json").stdout)
        names = {"title": "class", "count": "runs"}
        seconds = {"predicted": "predicted", "measured": "median_rank", "slowest": "slowest_rank"}
        rows = {row["title"]: row for row in data["trace"]["classes"]}
        self.assertEqual(len(rows), len(against["classes"]))
        for one in against["classes"]:
            row = rows[one["class"]]
            self.assertGreater(row["measured"], 0)
            self.assertEqual([row[name] for name in names], [one[name] for name in names.values()])
            self.assertEqual([row[name] for name in seconds], [one["seconds"][name] for name in seconds.values()])
        off = [abs(row["measured"] - row["predicted"]) for row in data["trace"]["classes"]]
        self.assertEqual(off, sorted(off, reverse=True))
        self.assertEqual(data["trace"]["waited"], {"predicted": against["exposed"]["predicted"], "median": against["exposed"]["median_rank"],
                                                   "slowest": against["exposed"]["slowest_rank"]})
        for key, other in (("ranks", "ranks"), ("steps", "steps"), ("left_out", "steps_left_out"), ("unmeasured", "unmeasured"),
                           ("launch_seconds_assumed", "launch_seconds_assumed")):
            self.assertEqual(data["trace"][key], against[other], key)
        for worst in against["worst"]:
            program = next(p for p, one in enumerate(programs) if one["name"] == worst["program"])
            (at,) = (i for i, place in enumerate(zip(measured["program"], measured["instruction"])) if place == (program, worst["instruction"]))
            self.assertAlmostEqual(measured["median"][at] * worst["runs"], worst["seconds"]["median_rank"], delta=1e-12)

    def test_texts_of_a_run_are_no_steps(self):
        source, plan = self.dir / "model.mlir", self.dir / "plan.bin"
        self.check("ftc", "model", "gpt2", "-o", source)
        self.check("ftc", "compile", source, "--strategy=full_shard", "--sample", "-o", plan)
        metrics, _ = self.trained(plan, 6, "--sample-every=2", "--sample-tokens=4", "--prompt=Licensed", f"--eval-data={self.text}", "--eval-every=2")
        self.assertEqual(sum('"sample":' in line for line in metrics.read_text().splitlines()), 3)
        data = document(self.report(plan, "--world-size=2", f"--run={metrics}"))
        self.assertEqual((data["run"]["step"], data["run"]["evaluated"]), (list(range(6)), [1, 3, 5]))

    # --- what it is made of ---

    def test_it_is_of_no_machine(self):
        plan = self.plan("gpt2", "full_shard")
        metrics, trace = self.trained(plan)
        page = self.report(plan, "--world-size=2", f"--run={metrics}", f"--trace={trace}")
        data = json.dumps(document(page))
        for word in (str(self.dir), str(self.shared), str(BIN)):
            self.assertNotIn(word, page)
        for word in (socket.gethostname(), getpass.getuser()):
            self.assertIsNone(re.search(rf"\b{re.escape(word)}\b", data))
        self.assertNotRegex(data, r'"/[a-z]')

    def test_nor_is_a_plan(self):
        folder = self.dir / "telling-folder"
        folder.mkdir()
        source, config, plan = folder / "model.mlir", folder / "train.yaml", self.dir / "plan.bin"
        self.check("ftc", "model", "gpt2", "-o", source)
        config.write_text("strategy: full_shard\nprefetch: auto\n")
        telling = environment(USER="telling-user", LOGNAME="telling-user", HOME=folder)
        self.check("ftc", "compile", source, f"--config={config}", "-o", plan, env=telling)
        content = plan.read_bytes()
        for word in (str(self.dir), str(BIN), "telling-folder", "telling-user"):
            self.assertNotIn(word.encode(), content)
        for word in (socket.gethostname(), getpass.getuser()):
            self.assertIsNone(re.search(rb"\b%s\b" % re.escape(word).encode(), content), word)

    def test_it_loads_nothing(self):
        page = self.report(self.plan("gpt2", "full_shard"))
        policy = re.search(r'<meta http-equiv="Content-Security-Policy" content="([^"]*)">', page)[1]
        self.assertTrue(policy.startswith("default-src 'none';"), policy)
        self.assertNotIn("unsafe", policy)
        self.assertNotRegex(policy, r"https?:|data:|\*")
        markup = re.sub(r"<(script|style)\b.*?</\1>", "", page, flags=re.DOTALL)
        self.assertNotRegex(markup, r"\bsrc=|<link|<iframe|<object|<form|@import")
        self.assertEqual(re.findall(r'href="(?!#)[^"]*"', markup), [])
        self.assertIn("Mike Bostock", markup)
        for licence in ("BSD-3-Clause", "ISC", "Expat"):  # of d3 and its parts
            self.assertIn(f"License: {licence}\n", markup)
        self.assertIn("Redistribution and use", markup)
        self.assertNotIn("innerHTML", page.split('<script id="document"')[1].split("</script>")[2])

    def test_the_same_twice(self):
        plan = self.plan("gpt2", "full_shard")
        self.assertEqual(self.report(plan), self.report(plan))
        self.assertEqual(self.check("ftc", "report", plan, "-o", "-").stdout, self.report(plan))

    def test_a_large_plan_is_small(self):
        source, plan = self.dir / "model.mlir", self.dir / "plan.bin"
        self.check("ftc", "model", "llama3-70b", "-o", source)
        self.check("ftc", "compile", source, "--strategy=full_shard", "--remat=full", "--target=h100-ib", "--world-size=64", "-o", plan)
        self.assertLess(len(self.report(plan)), 5e6)

    # --- bad input ---

    def test_bad_input(self):
        plan = self.plan("gpt2", "full_shard")
        text = self.dir / "text"
        text.write_text("no plan\n")
        self.refused(self.dir / "none.bin", words=["none.bin"], status=74)
        self.refused(text, words=["text", "not a plan"])
        self.refused(plan, "--world-size=0", words=["--world-size"], status=2)
        self.refused(plan, "--world-sizes=8,many", words=["--world-sizes=8,many: 'many' is no number of ranks"], status=2)
        self.refused(plan, "--mesh=replica:2,shard:2", words=["replica"])
        self.refused(plan, plan, words=["--compare"], status=2)
        self.refused(plan, plan, "--compare", f"--run={text}", words=["--run and --trace are of one plan"], status=2)
        self.refused(plan, f"--config={text}", words=["--config is for a model", "is compiled already"], status=2)
        self.refused("model.mlir", "--strategy=zero1", "--compare=no_shard,full_shard", status=2,
                     words=["--compare says which strategies; leave out --strategy"])
        self.refused("model.mlir", f"--trace={text}", words=["--trace wants the plan.bin that was traced, not a model"], status=2)
        done = run("ftc", "report", plan)
        self.assertEqual((done.returncode, len(done.stderr.splitlines())), (2, 1))
        self.assertIn("--output", done.stderr)
        for subject in (plan, "model.mlir"):  # found out before anything is read or compiled
            done = run("ftc", "report", subject, "-o", self.dir / "none" / "report.html")
            self.assertEqual((done.returncode, len(done.stderr.splitlines())), (74, 1))
            self.assertIn("report.html", done.stderr)

    def test_no_input_is_overwritten(self):
        """By no name that it has, and by no command that compiles or reports."""
        plan, model, config = self.dir / "plan.bin", self.dir / "model.mlir", self.dir / "train.yaml"
        self.check("ftc", "model", "gpt2", "-o", model)
        self.check("ftc", "compile", model, "--strategy=full_shard", "-o", plan)
        config.write_text("strategy: full_shard\n")
        link, hard = self.dir / "link.bin", self.dir / "hard.bin"
        link.symlink_to(plan)
        hard.hardlink_to(plan)
        metrics, trace = self.trained(plan)
        about = ("report", plan, "--world-size=2", f"--run={metrics}", f"--trace={trace}")
        before = {path: path.read_bytes() for path in (plan, model, config, metrics, trace)}
        for command, output in ((about, plan), (about, link), (about, hard), (about, metrics), (about, trace), (("report", link), plan),
                                (("report", model, "--strategy=full_shard"), model), (("report", model, f"--config={config}"), config),
                                (("report", plan, plan, "--compare"), plan), (("compile", model, "--strategy=full_shard"), model),
                                (("compile", model, f"--config={config}"), config), (("tune", model, f"--config={config}"), config),
                                (("tune", model), model)):
            with self.subTest(command=command[0], output=output.name):
                done = run("ftc", *command, "-o", output)
                self.assertEqual((done.returncode, len(done.stderr.splitlines())), (2, 1), done.stderr)
                self.assertIn(f"-o {output} would overwrite ", done.stderr)
                self.assertEqual({path: path.read_bytes() for path in before}, before)
        self.check("ftc", *about, "-o", self.dir / "report.html")
        self.check("ftc", *about, "-o", self.dir / "report.html")  # an older report is no input

    def test_other_runs(self):
        plan, other = self.plan("gpt2", "full_shard"), self.plan("gpt2", "no_shard")
        metrics, trace = self.trained(plan)
        self.refused(plan, f"--run={self.dir / 'none.jsonl'}", words=["none.jsonl"], status=74)
        self.refused(plan, f"--run={metrics}", words=["metrics.jsonl:1: metrics of 2 ranks", "--world-size=2"])
        self.refused(other, "--world-size=2", f"--run={metrics}", words=["metrics.jsonl:1: metrics of another plan"])
        self.refused(other, "--world-size=2", f"--trace={trace}", words=["trace.json' is a trace of plan"])
        self.refused(plan, "--world-size=2", "--target=h100-ib", f"--trace={trace}",
                     words=["trace.json' is a trace of CPU ranks, but h100-ib is not: give a --target that is"])
        self.refused(plan, f"--trace={trace}", words=["trace.json: trace of ranks on a mesh of"])
        gpus = self.dir / "gpus.json"
        gpus.write_text(trace.read_text().replace('"device":"cpu"', '"device":"cuda"'))
        for command in (("report", plan, "--world-size=2", f"--trace={gpus}", "-o", self.dir / "none.html"), ("explain", plan, f"--against={gpus}")):
            done = run("ftc", *command)
            self.assertEqual((done.returncode, done.stderr), (65, f"ftc: '{gpus}' is a trace of GPUs, but cpu is not: give a --target that is\n"))
        other_program = self.dir / "eval.json"
        other_program.write_text(trace.read_text().replace('"program":"train_step"', '"program":"eval_step"', 1))
        self.refused(plan, "--world-size=2", f"--trace={other_program}",
                     words=["eval.json: the trace has instructions of program 'eval_step', which does not run in a step"])
        self.refused(plan, "--world-size=2", f"--trace={metrics}", words=["metrics.jsonl", "is no trace of ftexec"])
        self.refused(plan, "--world-size=2", f"--run={trace}", words=["trace.json:1: no line of metrics"])
        lines = metrics.read_text().splitlines(keepends=True)
        metrics.write_text(lines[0].replace('"step":0', '"step":-1'))
        self.refused(plan, "--world-size=2", f"--run={metrics}", words=["metrics.jsonl:1: no line of metrics: its step is -1"])
        metrics.write_text("".join(lines[:4]) + lines[4][:-20])
        self.refused(plan, "--world-size=2", f"--run={metrics}", words=["metrics.jsonl:5: no line of metrics"])
        cut = trace.read_bytes()
        trace.write_bytes(cut[:len(cut) // 2])
        self.refused(plan, "--world-size=2", f"--trace={trace}", words=["is no trace of ftexec"])


if __name__ == "__main__":
    unittest.main()
