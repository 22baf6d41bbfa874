"""Memory, traffic and counts that `ftc explain` promises."""

import json
import re
import unittest

from harness import MODELS, SOURCE, STRATEGIES, EndToEnd, run

BLOCK = 1024  # elements


class Explain(EndToEnd):
    def test_classes_sum_to_the_arena(self):
        for model in MODELS:
            for strategy in STRATEGIES:
                for world in (1, 2, 3, 8, 512):
                    with self.subTest(model=model, strategy=strategy, world=world):
                        report = self.explain(self.plan(model, strategy), world)
                        self.assertEqual(sum(report["bytes"].values()), report["arena_bytes"])
                        self.assertEqual(report["host_arena_bytes"], 0)
                        for backend in ("shm", "gloo"):
                            self.assertEqual(report["communicator_bytes"][backend] > 0, world > 1)

    def test_full_shard_holds_a_share(self):
        """Parameters + gradients + optimizer state at rest: 1/N of no_shard's, within one block per unit and tensor."""
        for model in MODELS:
            whole = self.explain(self.plan(model, "no_shard"), 1)["at_rest"]
            units = len(self.explain(self.plan(model, "full_shard"), 2)["traffic"]["by_unit"])
            for world in (2, 3, 4, 64):
                with self.subTest(model=model, world=world):
                    share = self.explain(self.plan(model, "full_shard"), world)["at_rest"]
                    for kind, tensors in (("parameters", 1), ("gradients", 1), ("optimizer_state", 2)):
                        self.assertGreaterEqual(share[kind] * world, whole[kind])
                        self.assertLessEqual(share[kind], whole[kind] / world + units * tensors * BLOCK * 4)

    def test_traffic_follows_the_formulas(self):
        """Per step and rank, in bytes of padded fp32 parameters P: no_shard 2P (N-1)/N; full_shard's gathers and reductions P (N-1)/N each."""
        world = 4
        none = self.explain(self.plan("llama", "no_shard"), world)
        full = self.explain(self.plan("llama", "full_shard"), world)
        kept = self.explain(self.plan("llama", "shard_grad_op"), world)
        share = (world - 1) / world
        whole = none["at_rest"]["parameters"]
        small = 4096  # scalars: loss and norm
        self.assertNotIn("all_gather", {k: v for k, v in none["traffic"].items() if v and isinstance(v, dict) and v["bytes"]})
        self.assertAlmostEqual(none["traffic"]["all_reduce"]["bytes"], 2 * whole * share, delta=small)
        padded = full["at_rest"]["parameters"] * world
        self.assertEqual(full["traffic"]["reduce_scatter"]["bytes"], padded * share)
        self.assertEqual(kept["traffic"]["all_gather"]["bytes"], padded * share)
        gathered = full["traffic"]["all_gather"]["bytes"]
        self.assertGreater(gathered, kept["traffic"]["all_gather"]["bytes"])
        self.assertLessEqual(gathered, 2 * padded * share)

    def test_flops_are_about_six_per_parameter_and_token(self):
        report = self.explain(self.plan("gpt2", "no_shard"), 1)
        tokens = 4 * 64
        self.assertGreater(report["flops"]["total"], 6 * report["parameters"] * tokens * 0.7)
        self.assertLess(report["flops"]["total"], 6 * report["parameters"] * tokens * 2)

    def test_the_table_names_the_classes(self):
        text = self.check("ftc", "explain", self.plan("gpt2", "full_shard"), "--world-size=2").stdout
        for word in ("parameters", "gradients", "optimizer state", "activations", "gathered", "workspace", "arena", "all_gather",
                     "reduce_scatter", "FLOPs"):
            self.assertIn(word, text)

    def test_a_whole_run(self):
        """Steps, days and hours by arithmetic of one's own; a tenth more of a rate by a machine file that has it."""
        plan, tokens = self.plan("llama", "full_shard"), 3_000_000_000
        report = self.explain(plan, 8, "--tokens=3B")
        span, step = report["tokens"], report["step"]["seconds"]
        self.assertEqual((span["tokens"], span["tokens_per_step"]), (tokens, 8 * 4 * 64))
        self.assertEqual(span["steps"], -(-tokens // (8 * 4 * 64)))
        self.assertAlmostEqual(span["training_seconds"], span["steps"] * step, delta=1e-6 * span["training_seconds"])
        self.assertAlmostEqual(span["seconds"], sum(span[f"{what}_seconds"] for what in ("training", "evaluation", "saving")), delta=1e-3)
        self.assertAlmostEqual(span["rank_hours"], span["seconds"] * 8 / 3600, delta=1e-3)
        self.assertGreater(span["evaluation_seconds"], 0)
        # A copy reads and writes what a rank saves, once in half an hour.
        file = (SOURCE / "runtime/targets/cpu.yaml").read_text()
        rate = float(re.search(r"^memory:.*?gigabytes_per_s: ([\d.]+)", file, re.S | re.M)[1])
        saves = (span["training_seconds"] + span["evaluation_seconds"]) / 1800
        self.assertAlmostEqual(span["saving_seconds"], saves * 2 * report["snapshot_bytes"] / rate / 1e9, delta=1e-3 * span["saving_seconds"])
        faster = self.dir / "faster.yaml"
        for what, section, key in (("memory", "memory", "gigabytes_per_s"), ("products", "fp32", "tflops"), ("links in a node", "node", "gigabytes_per_s")):
            pattern = re.compile(rf"(^ *{section}:.*?^ *{key}: )([\d.]+)", re.S | re.M)
            faster.write_text(pattern.sub(lambda m: f"{m[1]}{float(m[2]) * 1.1!r}", file, count=1))
            wanted = self.explain(plan, 8, f"--target={faster}")["step"]["seconds"]
            self.assertLess(wanted, step)
            self.assertAlmostEqual(span["step_seconds_with_a_tenth_more"][what], wanted, delta=1e-9 * wanted, msg=what)
        self.assertEqual(span["step_seconds_with_a_tenth_more"]["links between nodes"], step)  # eight ranks are a node
        text = self.check("ftc", "explain", plan, "--world-size=8", "--tokens=2.5t").stdout
        for words in ("2,500,000,000,000 tokens on cpu, 8 ranks", "With a tenth more of one rate", "rank-hours"):
            self.assertIn(words, text)
        for bad in ("much", "0", "-1B", "2X", "1e30", "T"):
            done = run("ftc", "explain", plan, f"--tokens={bad}")
            self.assertEqual((done.returncode, len(done.stderr.splitlines())), (2, 1), done.stderr)
        done = run("ftc", "explain", plan, plan, "--compare", "--tokens=1B")
        self.assertIn("leave out --compare", done.stderr)
        for peak in ("--peak", "--peak=5"):
            done = run("ftc", "explain", plan, plan, "--compare", peak)
            self.assertEqual((done.returncode, done.stderr), (2, "ftc: --compare lists no buffers but with --json; leave out --peak\n"))
        compared = json.loads(self.check("ftc", "explain", plan, plan, "--compare", "--peak=5", "--json").stdout)
        self.assertEqual([len(one["live_at_peak"]) for one in compared["plans"]], [5, 5])
        self.assertIn("takes examples", run("ftc", "explain", self.plan("vit", "no_shard"), "--tokens=1B").stderr)


if __name__ == "__main__":
    unittest.main()
