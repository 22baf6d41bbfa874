"""ftc tune: what it chooses is what compiling everything would choose, exactly, within the memory, every time."""

import json
import re
import subprocess
import unittest

from harness import BIN, EndToEnd, environment, run

# A machine on which communication and memory both matter to models of this size.
SMALL = """\
version: 1
device: cuda
ranks_per_node: {ranks}
memory: {{capacity_mib: {memory}, gigabytes_per_s: 100, host_gigabytes_per_s: 20, beside_mib: 0, communicator_mib: 0}}
compute:
  fp32: {{tflops: 1, peak_tflops: 1.2}}
  bf16: {{tflops: 4, peak_tflops: 5}}
  fp16: {{tflops: 4, peak_tflops: 5}}
kernels: {{latency_us: 3}}
links:
  node: {{gigabytes_per_s: {link}, latency_us: 15}}
  network: {{gigabytes_per_s: 1, latency_us: 30}}
copies: {{gigabytes_per_s: 8, latency_us: 5}}
"""


class Tune(EndToEnd):
    # Leave few points.
    FEW = ("--remat=none", "--offload=none", "--wrap=transformer", "--persistence-threshold=0")

    def target(self, memory=64, ranks=4, link=4):
        path = self.dir / "small.yaml"
        path.write_text(SMALL.format(memory=memory, ranks=ranks, link=link))
        return f"--target={path}"

    def make(self, family, *options):
        path = self.dir / f"{family}.mlir"
        self.check("ftc", "model", family, "--preset=debug", *options, "-o", path)
        return path

    def tune(self, model, *options, timeout=600):
        return json.loads(self.check("ftc", "tune", model, "--json", *options, timeout=timeout).stdout)

    def assert_equals_exhaustive(self, model, *options):
        found, all_of_them = self.tune(model, *options), self.tune(model, "--exhaustive", *options)
        self.assertLessEqual(all_of_them["points"], 3000)
        self.assertTrue(found["best"])
        first, best = found["best"][0], all_of_them["best"][0]
        self.assertAlmostEqual(first["step_seconds"], best["step_seconds"], delta=1e-9)
        self.assertEqual(first["settings"], best["settings"])
        self.assertLessEqual(found["bound_seconds"], best["step_seconds"])
        return found

    def test_exhaustive(self):
        """Three models whose tables are walked wholly: one where all fits, one where memory decides, one with micro-steps."""
        gpt2 = self.make("gpt2", "--batch=4", "--seq=64")
        with self.subTest("all fits"):
            self.assert_equals_exhaustive(gpt2, "--world-size=4", self.target(memory=4096), "--offload=none", "--wrap=transformer",
                                          "--persistence-threshold=0")
        llama = self.make("llama", "--batch=8", "--seq=64", "--layers=4")
        with self.subTest("memory decides"):
            found = self.assert_equals_exhaustive(llama, "--world-size=2", self.target(), "--memory=39MiB", "--batch=8",
                                                  "--wrap=transformer", "--persistence-threshold=0", "--limit-all-gathers=2",
                                                  "--bucket-cap-mb=25")
            self.assertNotEqual(found["best"][0]["settings"]["remat"], "none")
        mixture = self.make("mixtral", "--batch=4", "--seq=64")
        with self.subTest("micro-steps"):
            self.assert_equals_exhaustive(mixture, "--world-size=2", self.target(memory=4096), "--remat=none",
                                          "--offload=none", "--mixed-precision=bf16", "--wrap=transformer")

    def assert_best_is_exhaustive(self, model, *options):
        found, whole = (self.tune(model, *how, *options)["best"] for how in ((), ("--exhaustive",)))
        self.assertTrue(found)
        self.assertAlmostEqual(found[0]["step_seconds"], whole[0]["step_seconds"], delta=1e-9)
        self.assertEqual(found[0]["settings"], whole[0]["settings"])
        return found

    def test_what_is_too_large_by_little(self):
        """Budgets below full recomputation, and schedules that gather less ahead, fit where nothing else does."""
        narrow = ("--world-size=2", self.target(memory=4096), "--strategy=full_shard", "--micro-steps=1", "--wrap=transformer",
                  "--persistence-threshold=0", "--prefetch=pre", "--limit-all-gathers=2", "--bucket-cap-mb=25")
        for family, batch, limits, options in (("llama", 8, (38611199,), ["--layers=4"]), ("gpt2", 8, (39074303,), ["--layers=4"]),
                                               ("bert", 4, (36801279, 35961855), []), ("vit", 4, (35764223,), [])):
            seq = [] if family == "vit" else ["--seq=64"]
            model = self.make(family, f"--batch={batch}", *seq, *options)
            for limit in limits:
                with self.subTest(family=family, limit=limit):
                    self.assert_best_is_exhaustive(model, *narrow, f"--batch={batch}", f"--memory={limit}")
        model = self.make("llama", "--batch=4", "--seq=64")
        found = self.assert_best_is_exhaustive(model, "--world-size=2", self.target(memory=4096), "--strategy=full_shard", "--batch=4",
                                               *self.FEW, "--memory=37300000")
        self.assertNotEqual(found[0]["settings"]["prefetch"], "pre")
        deep = self.make("llama", "--batch=8", "--seq=64", "--layers=12")
        with self.subTest("of many layers"):
            found = self.tune(deep, *narrow, "--batch=8", "--offload=none", "--memory=42605504")["best"]
            self.assertEqual(found[0]["settings"]["remat"], "budget:42605504")

    def test_recomputation_that_is_faster(self):
        """An expert's products read less than what they would keep."""
        model = self.make("mixtral", "--batch=4", "--seq=64")
        self.assert_best_is_exhaustive(model, "--world-size=2", self.target(memory=4096), "--wrap=transformer", "--persistence-threshold=0",
                                       "--offload=none", "--batch=4", "--micro-steps=1")

    def test_ten_rows_where_ten_differ(self):
        model = self.make("gpt2", "--layers=1", "--batch=4", "--seq=64")
        found = self.tune(model, "--world-size=2", "--target=h100", "--batch=4")["best"]
        self.assertEqual(len(found), 10)
        self.assertEqual(len({(row["step_seconds"], row["device_bytes"], row["host_arena_bytes"]) for row in found}), 10)

    def test_budgets_of_many_layers(self):
        """Where fewer than ten differ, budgets with every schedule are among them; each point of the table is told of."""
        model = self.make("llama", "--layers=9", "--hidden=128", "--ffn=352", "--batch=4", "--seq=64")
        options = ["--world-size=2", "--target=cpu", "--wrap=transformer", "--persistence-threshold=0", "--strategy=no_shard",
                   "--micro-steps=1", "--memory=32618342"]
        found, whole = self.tune(model, *options), self.tune(model, "--exhaustive", *options)
        self.assertLess(len(found["best"]), 10)
        self.assertEqual([row["settings"] for row in found["best"]], [row["settings"] for row in whole["best"]])
        shown = {json.dumps(row["settings"], sort_keys=True) for row in found["best"] + found["front"]}
        self.assertEqual(found["points"], len(shown) + sum(one["points"] for one in found["rejected"]))
        self.assertRegex(self.check("ftc", "tune", model, *options).stdout, r"no_shard, less recomputation or offload: .* too much, with a batch of 4")

    def test_own_configuration_that_is_faster(self):
        """It changes bits, and so is not chosen; the output says how it would be."""
        model, config = self.make("gpt2", "--batch=4", "--seq=64"), self.dir / "own.yaml"
        config.write_text("strategy: hybrid_shard\nmesh: replica:4,shard:2\ntarget: a100-ib\nmixed_precision: bf16\n")
        options = [f"--config={config}", "--remat=none", "--offload=none", "--wrap=none", "--batch=4"]
        text = self.check("ftc", "tune", model, *options).stdout
        self.assertIn("yours is faster than row 1, and changes bits, which is never chosen: --strategy=hybrid_shard "
                      "--mesh=replica:4,shard:2 chooses these bits", text)
        chosen = self.tune(model, *options, "--strategy=hybrid_shard", "--mesh=replica:4,shard:2")
        self.assertAlmostEqual(chosen["best"][0]["step_seconds"], chosen["own"]["step_seconds"], delta=1e-9)

    def test_auto_refuses_before_it_searches(self):
        model = self.make("gpt2", "--batch=4", "--seq=64")
        done = subprocess.run([BIN / "ftc", "compile", model, "--strategy=auto", "--world-size=2", "--target=h100", "--global-batch=7", "-o",
                               self.dir / "p.bin"], capture_output=True, text=True, check=False, env=environment())
        self.assertEqual((done.returncode, done.stderr), (65, "ftc: --global-batch wants 7 sequences a step, which is no multiple of the "
                                                              "model's batch of 4 in 1 micro-step\n"))

    def test_persistence_threshold(self):
        """One that is given goes with strategies that keep all gathered."""
        model = self.make("gpt2", "--batch=4", "--seq=64")
        options = ["--world-size=2", self.target(memory=4096), "--persistence-threshold=5000", "--remat=none", "--offload=none"]
        self.assert_best_is_exhaustive(model, *options, "--strategy=no_shard")

    def test_estimates_that_are_too_low(self):
        """Of many layers, with a byte less than the best row takes: what was thought to fit does not, and what it made needless is tried."""
        model = self.make("gpt2", "--batch=4", "--seq=64", "--layers=10")
        options = ["--world-size=2", self.target(memory=4096), "--batch=4", "--strategy=full_shard", "--wrap=transformer",
                   "--persistence-threshold=0", "--offload=none", "--prefetch=pre", "--limit-all-gathers=2", "--bucket-cap-mb=25"]
        best = self.tune(model, *options)["best"][0]
        less = [*options, f"--memory={best['device_bytes'] - 1}"]
        found = self.assert_equals_exhaustive(model, *less)
        self.assertLess(found["best"][0]["device_bytes"], best["device_bytes"])

    def test_host_memory(self):
        """Where the host has none to give, recomputation alone is tried."""
        model = self.make("llama", "--batch=8", "--seq=64", "--layers=4")
        found = self.tune(model, "--world-size=2", self.target(), "--memory=39MiB", "--host-memory=1KiB", "--batch=8",
                          "--wrap=transformer", "--persistence-threshold=0")
        self.assertTrue(found["best"])
        self.assertTrue(all(row["host_arena_bytes"] <= 1024 for row in found["best"]))

    def test_count_of_compilations(self):
        """It does not depend on the number of cores, many meshes of one strategy or not."""
        model = self.make("gpt2", "--batch=4", "--seq=64", "--layers=10")
        options = ["ftc", "tune", model, "--world-size=16", self.target(memory=4096), "--strategy=hybrid_shard", "--wrap=transformer",
                   "--persistence-threshold=0", "--offload=none", "--remat=none", "--prefetch=pre", "--limit-all-gathers=2",
                   "--bucket-cap-mb=25"]
        self.assertEqual(len({self.check(*options).stdout for _ in range(3)}), 1)

    def test_rows_are_exact(self):
        """Each of the ten compiles at its mesh, is proved, and takes the bytes and the time that the row says."""
        model = self.make("llama", "--batch=8", "--seq=64", "--layers=12")
        target = self.target()
        found = self.tune(model, "--world-size=4", target, "--memory=42MiB", "--mixed-precision=bf16", "--wrap=transformer",
                          "--persistence-threshold=0")
        self.assertEqual(len(found["best"]), 10)
        for row in found["best"]:
            settings = [f"--{name.replace('_', '-')}={value}" for name, value in row["settings"].items()]
            plan = self.dir / "plan.bin"
            self.check("ftc", "compile", model, *settings, target, "--mixed-precision=bf16", "--code=none", "-o", plan)
            self.check("ftc", "verify", plan)
            mesh = f"--mesh={row['settings']['mesh']}"
            explained = json.loads(self.check("ftc", "explain", plan, mesh, "--json").stdout)
            self.assertEqual(explained["arena_bytes"], row["arena_bytes"])
            self.assertLessEqual(row["device_bytes"], 42 << 20)
            self.assertAlmostEqual(explained["step"]["seconds"], row["step_seconds"], delta=1e-9)

    def test_answer_stays(self):
        """The same answer each time; train.yaml compiles to the plan of the first row."""
        model = self.make("gpt2", "--batch=4", "--seq=64", "--layers=10")
        options = [model, "--world-size=4", self.target(), "--global-batch=32", "--clip=0.5", "--wrap=transformer",
                   "--persistence-threshold=0", "--limit-all-gathers=2"]
        texts = {self.check("ftc", "tune", *options, "-o", self.dir / "train.yaml").stdout for _ in range(2)}
        self.assertEqual(len(texts), 1)
        first = self.tune(*options)["best"][0]
        config = (self.dir / "train.yaml").read_text()
        self.assertRegex(config, r"clip: 0.5 +# flag --clip")
        self.assertRegex(config, r"strategy: \w+ +# ftc tune")
        plan, own = self.dir / "plan.bin", self.dir / "own.bin"
        self.check("ftc", "compile", model, f"--config={self.dir / 'train.yaml'}", "--code=none", "-o", plan)
        settings = [f"--{name.replace('_', '-')}={value}" for name, value in first["settings"].items()]
        self.check("ftc", "compile", model, *settings, *options[2:4], "--clip=0.5", "--code=none", "-o", own)
        self.assertEqual(plan.read_bytes(), own.read_bytes())

    def test_own_configuration(self):
        """The user's own settings are the first row, whether or not they fit; flags are left as they are."""
        model = self.make("gpt2", "--batch=4", "--seq=64")
        config = self.dir / "own.yaml"
        config.write_text("fsdp: {fsdp_sharding_strategy: FULL_SHARD}\nremat: full\n")
        found = self.tune(model, f"--config={config}", "--world-size=4", self.target(memory=4096), "--prefetch=post")
        self.assertTrue(found["own"]["fits"])
        self.assertGreaterEqual(found["own"]["step_seconds"], found["best"][0]["step_seconds"])
        self.assertEqual({row["settings"]["prefetch"] for row in found["best"]}, {"post"})
        self.assertNotEqual(found["best"][0]["settings"]["remat"], "full")
        config.write_text("fsdp: {fsdp_sharding_strategy: NO_SHARD}\nwrap: none\n")
        more = self.tune(model, f"--config={config}", "--world-size=4", self.target(memory=4096), "--global-batch=64", "--remat=none", "--wrap=transformer")
        per_step = [row["tokens_per_s"] * row["step_seconds"] for row in (more["own"], more["best"][0])]
        self.assertAlmostEqual(*per_step, delta=1e-3)
        small = self.tune(model, f"--config={config}", "--world-size=4", self.target(), "--memory=36MiB", "--wrap=transformer")
        self.assertFalse(small["own"]["fits"])

    def test_auto(self):
        """--strategy=auto, and FSDP's key, compile what tune would choose with this batch; what is given stays."""
        model = self.make("llama", "--batch=4", "--seq=64")
        target = self.target(memory=4096)
        config = self.dir / "auto.yaml"
        config.write_text("fsdp: {fsdp_sharding_strategy: AUTO}\n")
        plan, other = self.dir / "a.bin", self.dir / "b.bin"
        done = self.check("ftc", "compile", model, f"--config={config}", "--world-size=4", target, "--remat=full", "--code=none", "-o", plan)
        chosen = re.search(r"--strategy=auto chose (.*)", done.stderr)[1].split()
        self.assertIn("remat=full", chosen)
        best = self.tune(model, "--world-size=4", target, "--remat=full", "--batch=4")["best"][0]["settings"]
        self.assertLessEqual(set(chosen), {f"{name}={value}" for name, value in best.items()})
        flags = ["--" + setting.replace("_", "-") for setting in chosen]
        self.check("ftc", "compile", model, *flags, "--world-size=4", target, "--code=none", "-o", other)
        self.assertEqual(plan.read_bytes(), other.read_bytes())
        done = run("ftc", "compile", model, "--strategy=auto", "--world-size=4", self.target(memory=1), "-o", plan)
        self.assertEqual((done.returncode, len(done.stderr.splitlines())), (65, 1), done.stderr)
        self.assertRegex(done.stderr, "^ftc: --strategy=auto: nothing fits")
        done = run("ftc", "compile", model, "--strategy=auto", "--world-size=4", "--memory-budget=1KiB", "-o", plan)
        self.assertRegex(done.stderr, "^ftc: --strategy=auto: nothing fits --memory-budget=1.00 KiB with 4 ranks; ftc tune says by how much\n$")

    def test_a_budget_is_a_limit(self):
        """--memory-budget limits as --memory does, where the target's memory is not known: recomputation within it is in the table."""
        model = self.make("llama", "--batch=4", "--seq=64")
        options = [model, "--world-size=4", "--batch=4", "--strategy=full_shard", *self.FEW[1:]]  # recomputation is open
        limit = self.tune(*options)["best"][0]["device_bytes"] * 9 // 10
        limited, budget = (self.tune(*options, f"--{name}={limit}") for name in ("memory", "memory-budget"))
        self.assertEqual(budget["memory_bytes"], limit)
        self.assertEqual(limited["best"][0]["device_bytes"], budget["best"][0]["device_bytes"])
        self.assertTrue(any(row["settings"]["remat"] == f"budget:{limit}" for row in budget["best"]))
        self.assertRegex(self.check("ftc", "tune", *options, f"--memory-budget={limit}").stdout.splitlines()[0], ", within .* of a rank's device$")

    def test_memory_budget(self):
        """The limit that prefetch=auto was given goes with a row: train.yaml compiles to the row's bytes, within it."""
        model = self.make("llama", "--batch=1", "--seq=16", "--layers=6")
        options = [model, "--world-size=2", self.target(), "--strategy=full_shard", "--batch=1", *self.FEW]
        least = min(row["device_bytes"] for row in self.tune(*options, "--prefetch=none")["best"])
        free = self.tune(*options, "--prefetch=auto")["best"][0]["device_bytes"]
        self.assertLess(least, free)
        limit, config, plan = (least + free) // 2, self.dir / "train.yaml", self.dir / "plan.bin"
        best = self.tune(*options, "--prefetch=auto", f"--memory={limit}", "-o", config)["best"][0]
        self.assertEqual(best["settings"]["memory_budget"], str(limit))
        self.assertLessEqual(best["device_bytes"], limit)
        self.check("ftc", "compile", model, f"--config={config}", "--code=none", "-o", plan)
        self.assertEqual(json.loads(self.check("ftc", "explain", plan, "--json").stdout)["arena_bytes"], best["arena_bytes"])

    def test_wrap_by_names(self):
        """Units by names that the user decided: written as they are read."""
        model = self.make("gpt2", "--batch=4", "--seq=64")
        names, config, plan = "--wrap=names:transformer.h.*", self.dir / "train.yaml", self.dir / "plan.bin"
        options = [model, "--world-size=2", self.target(memory=4096), "--remat=none", "--offload=none",
                   "--persistence-threshold=0", names]
        self.check("ftc", "tune", *options, "-o", config)
        self.assertRegex(config.read_text(), r"wrap: 'names:transformer\.h\.\*' +# flag --wrap")
        self.check("ftc", "compile", model, f"--config={config}", "--code=none", "-o", plan)
        self.check("ftc", "compile", *options, "--strategy=auto", "--code=none", "-o", plan)

    def test_mesh(self):
        """A mesh that is given goes with the strategies that use its axes."""
        model = self.make("gpt2", "--batch=4", "--seq=64")
        for mesh, strategies in (("replica:2,shard:4", {"hybrid_shard", "hybrid_shard_zero2"}),
                                 ("replica:8,shard:1", {"no_shard", "hybrid_shard", "hybrid_shard_zero2"})):
            space = self.check("ftc", "tune", model, f"--mesh={mesh}", "--space").stdout
            self.assertEqual(set(re.findall(rf"(\w+) {mesh}", space)), strategies)
            self.assertEqual(len(re.findall("replica:", space)), len(strategies))

    def test_evaluation(self):
        """Nothing of it is recomputed or taken in micro-steps, and nobody is told so of what was chosen."""
        model = self.make("gpt2", "--batch=4", "--seq=64")
        space = self.check("ftc", "tune", model, "--world-size=2", "--evaluate=on", "--space").stdout
        self.assertRegex(space, r"batch +4 x 1 micro-step\n +remat +none\n")
        options = [model, "--world-size=2", self.target(memory=4096), "--evaluate=on", "--wrap=transformer"]
        self.assertEqual({row["settings"]["micro_steps"] for row in self.tune(*options)["best"]}, {"1"})
        done = self.check("ftc", "compile", *options, "--strategy=auto", "--code=none", "-o", self.dir / "plan.bin")
        self.assertNotIn("no effect", done.stderr)

    def test_kept_batch(self):
        """An op that keeps the batch stands at the head of the errors that it causes."""
        model = self.dir / "own.mlir"
        model.write_text('ft.parameter @w : tensor<8x8xf32> = #ft.init<normal, 0.02>\n'
                         'func.func @forward(%x: tensor<4x8xf32> {ft.input = "x"}) -> tensor<f32> {\n'
                         '  %w = ft.get @w : tensor<8x8xf32>\n'
                         '  %y = ft.matmul %x, %w : (tensor<4x8xf32>, tensor<8x8xf32>) -> tensor<4x8xf32>\n'
                         '  %p = ft.slice %y at [1, 0] : tensor<4x8xf32> -> tensor<2x8xf32>\n'
                         '  %loss = ft.reduce "sum" %p over [0, 1] : tensor<2x8xf32> -> tensor<f32>\n'
                         '  return %loss : tensor<f32>\n}\n')
        for options, words in ((["--batch=8"], "so the batch of a rank is 4, not 8"),
                               (["--global-batch=6"], "6 sequences of the global batch of 6, which are no whole number of micro-steps of 4")):
            done = run("ftc", "tune", model, *options)
            self.assertEqual((done.returncode, len(done.stderr.splitlines())), (65, 1), done.stderr)
            self.assertTrue(done.stderr.startswith(f"{model}:"), done.stderr)
            for word in ("ft.slice", "keeps the batch from changing", words):
                self.assertIn(word, done.stderr)

    def test_scaling(self):
        """--world-sizes: weak scaling keeps a rank's sequences, strong scaling the step's."""
        model = self.make("gpt2", "--batch=4", "--seq=64")
        target = self.target(memory=4096)
        options = [model, "--world-sizes=2,8,32", target, "--offload=none", "--wrap=transformer", "--persistence-threshold=0"]
        weak = self.tune(*options)
        self.assertEqual([of["world_size"] for of in weak], [2, 8, 32])
        tokens = [of["best"][0]["tokens_per_s"] for of in weak]
        self.assertEqual(sorted(tokens), tokens)
        strong = self.tune(*options, "--global-batch=64")
        for of in strong:
            settings = of["best"][0]["settings"]
            self.assertEqual(int(settings["batch"]) * int(settings["micro_steps"]) * of["world_size"], 64)
        text = self.check("ftc", "tune", *options).stdout
        self.assertRegex(text, r"communication (stays hidden|shows)")

    def test_sizes_without_a_table(self):
        """Of several, in whatever order: a row with the reason."""
        model = self.make("gpt2", "--batch=4", "--seq=64")
        options = [model, "--world-sizes=8,3,2,8", self.target(memory=4096), "--global-batch=64", *self.FEW]
        rows = self.tune(*options)
        self.assertEqual([row["world_size"] for row in rows], [2, 3, 8])
        self.assertEqual([bool(row.get("best")) for row in rows], [True, False, True])
        self.assertIn("no multiple of 3 ranks", rows[1]["refused"])
        self.assertRegex(self.check("ftc", "tune", *options).stdout, r"(?m)^ +3  .*no multiple of 3 ranks$")

    def test_bits(self):
        """Shard groups that are no power of two, and 16-bit sums in two stages, are shown and never chosen."""
        model = self.make("gpt2", "--batch=4", "--seq=64")
        target = self.target(memory=4096, ranks=6)
        space = self.check("ftc", "tune", model, "--world-size=12", target, "--space").stdout
        self.assertIn("hybrid_shard replica:2,shard:6 (changes bits)", space)
        self.assertNotIn("hybrid_shard replica:6,shard:2 (changes bits)", space)
        found = self.tune(model, "--world-size=12", target, "--strategy=hybrid_shard")
        self.assertTrue(all(row["settings"]["mesh"] != "replica:2,shard:6" for row in found["best"]))
        self.assertTrue({row["settings"]["mesh"] for row in found["changes_bits"]} <= {"replica:2,shard:6", "replica:4,shard:3"})
        self.assertTrue(found["changes_bits"])
        rounded = self.check("ftc", "tune", model, "--world-size=8", target, "--space", "--reduce-dtype=bf16", "--param-dtype=bf16").stdout
        self.assertNotRegex(rounded, r"hybrid_shard replica:\d+,shard:\d+;")
        # Where the user leaves no others, those bits have been chosen.
        only = self.tune(model, "--world-size=9", self.target(memory=4096, ranks=3), "--strategy=hybrid_shard", *self.FEW)
        self.assertEqual({row["settings"]["mesh"] for row in only["best"]}, {"replica:3,shard:3"})
        self.assertEqual(only["changes_bits"], [])

    def test_bad_input(self):
        model = self.make("gpt2", "--batch=4", "--seq=64")
        bad = self.dir / "bad.yaml"
        bad.write_text("version: 1\ndevice: tpu\n")
        cases = [
            (["--world-size=3", "--global-batch=64"], 65, "no multiple of 3 ranks"),
            (["--memory=some"], 2, "--memory"),
            (["--memory=0"], 2, "--memory"),
            (["--world-sizes=2,x"], 2, "'x' is no number of ranks"),
            (["--world-sizes=2,4", "-o", "t.yaml"], 2, "-o writes one configuration"),
            ([f"--target={bad}"], 65, "bad.yaml"),
            (["--strategy=ful_shard"], 2, "did you mean"),
            (["--strategy=hybrid_shard", "--world-size=1"], 65, "no mesh of 1 ranks"),
            (["--memory=1KiB"], 65, "nothing of the table fits"),
            (["--mesh=replica:2,shard:4", "--strategy=full_shard"], 65, "--strategy=full_shard uses one axis of a mesh"),
            (["--mesh=replica:2,shard:2", "--world-size=8"], 2, "--mesh and --world-size contradict each other"),
            (["--min-lr=1"], 2, "min_lr = 1 is above lr"),
            (["--world-sizes=3,5", "--global-batch=64"], 65, "no multiple of 3 ranks"),
            (["--world-sizes=2,4", "--world-size=2"], 2, "--world-size and --world-sizes both say"),
            (["--world-sizes=2,4", "--mesh=replica:1,shard:2"], 2, "--mesh and --world-sizes both say"),
            (["--world-sizes=2,4", "--space"], 2, "--space prints one table"),
            (["--space", "--json"], 2, "--space prints text"),
            (["--batch=3", "--global-batch=64"], 65, "64 sequences of the global batch of 64, which are no whole number of micro-steps of 3"),
            (["--micro-steps=3", "--global-batch=64"], 65, "no multiple of 3 micro-steps"),
            (["--batch=4", "--micro-steps=3", "--global-batch=64"], 65, "not 3 micro-steps of 4"),
        ]
        for options, status, words in cases:
            with self.subTest(options=options):
                done = run("ftc", "tune", model, *options)
                self.assertEqual((done.returncode, len(done.stderr.splitlines())), (status, 1), done.stderr)
                self.assertIn(words, done.stderr)
        many = self.check("ftc", "tune", model, "--batch=1", "--micro-steps=2048", "--space").stdout
        self.assertIn("1 x 2048 micro-steps", many)
        missing = run("ftc", "tune", self.dir / "no.mlir")
        self.assertEqual((missing.returncode, len(missing.stderr.splitlines())), (74, 1), missing.stderr)


if __name__ == "__main__":
    unittest.main()
