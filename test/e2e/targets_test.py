"""Targets: two links, files of machines, and that everyone reckons with the target that a plan carries."""

import collections
import json
import math
import os
import re
import unittest

from harness import SOURCE, EndToEnd, run

BLOCK = 1024  # elements
TEXT = """device: cuda
ranks_per_node: 4
memory: {capacity_mib: 40000, gigabytes_per_s: 1000}
compute:
  fp32: {tflops: 20, peak_tflops: 25}
  bf16: {tflops: 200, peak_tflops: 250}
  fp16: {tflops: 200, peak_tflops: 250}
kernels: {latency_us: 2}
links:
  node: {gigabytes_per_s: 100, latency_us: 5, step_us: 1}
  network: {gigabytes_per_s: 10, latency_us: 10, step_us: 5}
copies: {gigabytes_per_s: 20, latency_us: 10}
version: 1
"""


def figures(path):
    """Numbers of a target file by their path; enough of YAML for the files that are shipped."""
    found, sections = {}, []
    for line in path.read_text().splitlines():
        match = re.match(r"( *)([a-z0-9_]+):\s*([0-9.]+)?\s*$", line)
        if not match:
            continue
        depth = len(match[1]) // 2
        sections = sections[:depth] + [match[2]]
        if match[3]:
            found[".".join(sections)] = float(match[3])
    return found


def curve(path, key):
    """Points of the one line `key: {...}` of a file: [(place, value)]; none when it is not there."""
    match = re.search(rf"^ *{key}: (?:{{\w+: )?{{([^{{}}]*)}}", path.read_text(), re.M)
    return [tuple(map(float, pair.split(":"))) for pair in match[1].split(",")] if match else []


def value_at(points, at, otherwise):
    """Interpolated in the logarithm of the place, the ends beyond them."""
    if not points:
        return otherwise
    for (low, first), (high, second) in zip(points, points[1:]):
        if low <= at <= high:
            return first + (second - first) * math.log(at / low) / math.log(high / low)
    return points[0][1] if at < points[0][0] else points[-1][1]


class Machine:
    """What collectives cost, by the formula of docs/targets.md, in seconds."""

    def __init__(self, path):
        f = figures(path)
        self.ramp = curve(path, "ramp")  # of the network alone
        self.in_node = {kind: curve(path, kind) for kind in ("all_gather", "reduce_scatter")}  # over 8 GPUs of a node
        self.per_node = int(f["ranks_per_node"])
        self.links = {name: {key: f.get(f"links.{name}.{key}", 0.0) for key in ("gigabytes_per_s", "latency_us", "step_us")}
                      for name in ("node", "network")}

    def collective(self, kind, whole, ranks, nodes):
        """`ranks` ranks, as many on each of `nodes` nodes; `whole` bytes."""
        return self.alone(kind, whole, ranks, nodes) * (1 + self.longer)

    def alone(self, kind, whole, ranks, nodes):
        node, network = self.links["node"], self.links["network"]
        on_node = ranks // nodes
        if (ranks, nodes) == (8, 1) and self.in_node.get(kind):
            points = self.in_node[kind]
            least = points[0][0] * 2**20 / (points[0][1] * 1e9)
            return max(least, whole / (value_at(points, whole / 2**20, 0) * 1e9))
        if kind == "all_reduce":
            inside, across = 2 * (on_node - 1), 2 * math.ceil(math.log2(nodes))
        else:
            inside, across = ranks - nodes, nodes - 1
        latency = (network if nodes > 1 else node)["latency_us"] + inside * node["step_us"] + across * network["step_us"]
        passes = 2 if kind == "all_reduce" else 1
        in_node = whole * (on_node - 1) / on_node / (node["gigabytes_per_s"] * 1e9)
        reached = value_at(self.ramp, whole / ranks / 2**20, 1) * network["gigabytes_per_s"] * 1e9
        between = whole * (nodes - 1) / nodes / on_node / reached
        return latency * 1e-6 + passes * max(in_node, between)


class Targets(EndToEnd):
    def compiled(self, source, *options):
        plan = self.dir / f"plan{len(list(self.dir.iterdir()))}.bin"
        self.check("ftc", "compile", source, *options, "-o", plan)
        return plan

    def model(self, name, *options):
        source = self.dir / f"{name}.mlir"
        self.check("ftc", "model", name, *options, "-o", source)
        return source

    def schedule(self, plan, *options):
        return json.loads(self.check("ftc", "explain", plan, "--schedule", "--json", *options).stdout)

    def units(self, plan):
        """Elements of each unit."""
        dump = self.check("ftc", "dump", plan).stdout
        section = dump[dump.index("\nunits\n"):dump.index("\nparameters\n")]
        return {name: int(elements) for name, elements in re.findall(r"^ +\d+ (\S+): (\d+) elements$", section, re.M)}

    def simulated(self, *command):
        out = self.check("ftexec", *command, "--device=null").stdout
        return re.search(r"simulated step ([0-9.]+) ms", out)[1], out

    def test_llama3_8b_on_64_ranks_pays_for_the_links_it_uses(self):
        """Each gather and reduction of 64 H100, reckoned here from the figures of the target's file and the units' sizes. Without
        prefetching none runs beside another, or beside kernels."""
        machine = Machine(SOURCE / "runtime/targets/h100-ib.yaml")
        machine.longer = 0.02  # by the jitter of 64 ranks
        self.assertIn("jitter:\n  points: {1: 0, 8: 0.01, 64: 0.02,", (SOURCE / "runtime/targets/h100-ib.yaml").read_text())
        source = self.model("llama3-8b", "--batch=1", "--seq=4096")
        steps = {}
        for strategy, shard in (("full_shard", 64), ("hybrid_shard", 8)):
            plan = self.compiled(source, f"--strategy={strategy}", "--target=h100-ib", "--world-size=64", "--param-dtype=bf16",
                                 "--reduce-dtype=fp32", "--prefetch=none")
            schedule, units = self.schedule(plan), self.units(plan)
            self.assertEqual((schedule["target"], schedule["mesh"]), ("h100-ib", {"replica": 64 // shard, "shard": shard}))
            padded = {name: math.ceil(elements / BLOCK / shard) * BLOCK * shard for name, elements in units.items()}
            shard_nodes, busy, seen = max(1, shard // 8), collections.Counter(), {}
            (program,) = schedule["programs"]
            for row in program["rows"]:
                if row["kernels"] > 0:
                    continue
                kind, _, name = row["what"].partition(" ")
                if kind == "all_gather":  # 16-bit parameters
                    seconds = machine.collective(kind, 2 * padded[name], shard, shard_nodes)
                elif kind == "reduce_scatter":  # fp32 gradients
                    seconds = machine.collective(kind, 4 * padded[name], shard, shard_nodes)
                elif name in units:  # their slices, over the replicas: one rank of each node
                    seconds = machine.collective(kind, 4 * padded[name] / shard, 64 // shard, 64 // shard)
                else:  # a few numbers of all ranks
                    seconds = None
                took = row["end"] - row["begin"]
                if seconds is not None:
                    self.assertAlmostEqual(took, seconds, delta=1e-9, msg=row["what"])
                seen[kind] = seen.get(kind, 0) + 1
                busy[row["stream"]] += took if seconds is None else seconds
            self.assertEqual(seen["all_gather"] >= 34 and seen["reduce_scatter"] == 34, True, seen)
            self.assertEqual(seen["all_reduce"] >= 34, strategy == "hybrid_shard", seen)
            totals = schedule["seconds"]
            for stream, seconds in busy.items():
                self.assertAlmostEqual(totals["communication"][stream], seconds, delta=1e-7)
            self.assertAlmostEqual(totals["total"], totals["compute"] + totals["exposed"] + totals["launches"], delta=1e-7)
            steps[strategy] = totals
            # Not a gather of the hybrid strategy touches the network.
            slower = (SOURCE / "runtime/targets/h100-ib.yaml").read_text().replace("gigabytes_per_s: 42", "gigabytes_per_s: 0.042")
            other = self.dir / "slow.yaml"
            other.write_text(slower)
            gathers = self.schedule(plan, f"--target={other}")["seconds"]["communication"]["gather"]
            if strategy == "hybrid_shard":
                self.assertAlmostEqual(gathers, totals["communication"]["gather"], delta=1e-9)
            else:
                self.assertGreater(gathers, 100 * totals["communication"]["gather"])
        gather = {strategy: total["communication"]["gather"] for strategy, total in steps.items()}
        self.assertLess(gather["hybrid_shard"], gather["full_shard"])

    def test_a_plan_is_explained_for_what_it_was_compiled_for(self):
        plan = self.compiled(self.model("llama"), "--strategy=hybrid_shard", "--target=h100-ib", "--world-size=24")
        for options in ((), ("--target=h100-ib",), ("--world-size=24",), ("--mesh=replica:3,shard:8",)):
            report = json.loads(self.check("ftc", "explain", plan, "--json", *options).stdout)
            self.assertEqual((report["target"], report["world_size"], report["device"]), ("h100-ib", 24, "cuda"))
            self.assertEqual(report["mesh"], {"replica": 3, "shard": 8})
        self.assertIn("simulated on h100-ib", self.check("ftc", "explain", plan, "--schedule").stdout)
        compared = json.loads(self.check("ftc", "explain", "--compare", plan, plan, "--json").stdout)["plans"]
        self.assertEqual([(p["target"], p["world_size"]) for p in compared], [("h100-ib", 24)] * 2)
        other = json.loads(self.check("ftc", "explain", plan, "--json", "--target=cpu", "--world-size=16").stdout)
        self.assertEqual((other["target"], other["world_size"], other["device"]), ("cpu", 16, "cpu"))
        mesh = self.compiled(self.model("llama"), "--strategy=hybrid_shard", "--mesh=replica:2,shard:3")
        for options in ((), ("--world-size=6",)):
            report = json.loads(self.check("ftc", "explain", mesh, "--json", *options).stdout)
            self.assertEqual(report["mesh"], {"replica": 2, "shard": 3})
        refused = run("ftc", "explain", plan, "--world-size=12")
        self.assertEqual(refused.returncode, 65)
        self.assertIn("12 ranks make no whole number of nodes of 8: give --mesh=", refused.stderr)

    def test_the_null_device_takes_the_time_of_explain(self):
        mine = self.dir / "mine.yaml"
        mine.write_text(TEXT)
        source = self.model("gpt2-124m", "--batch=2", "--seq=128")
        for target, strategy, world, options in (
                ("h100-ib", "full_shard", 64, ("--mixed-precision=bf16", "--prefetch=auto")),
                (mine, "hybrid_shard", 8, ("--micro-steps=3", "--offload=optimizer")),
                (mine, "zero1", 6, ("--remat=full",)), ("cpu", "no_shard", 3, ()),
                # Two collectives share a link; measured points, ramps and jitter; eager launches.
                ("h100-efa", "hybrid_shard", 16, ("--mixed-precision=bf16", "--micro-steps=2", "--accumulate=each")),
                ("a100-roce", "shard_grad_op", 512, ("--mixed-precision=bf16", "--offload=optimizer,parameters")),
                ("cpu-2s", "hybrid_shard_zero2", 4, ("--offload=optimizer:step",)),
                (SOURCE / "runtime/targets/validation/llm-foundry-a100.yaml", "full_shard", 8,
                 ("--mixed-precision=bf16", "--remat=full", "--prefetch=auto"))):
            with self.subTest(strategy=strategy, target=str(target)):
                plan = self.compiled(source, f"--strategy={strategy}", f"--target={target}", f"--world-size={world}", *options)
                mine.unlink(missing_ok=True)  # the plan has the figures
                seconds = self.schedule(plan)["seconds"]["total"]
                simulated, out = self.simulated(plan)
                self.assertEqual(simulated, f"{seconds * 1e3:.3f}")
                self.assertIn(f"{world} ranks", out)
                self.assertEqual(self.simulated(plan, "--steps=3")[0], simulated)
                arena = json.loads(self.check("ftc", "explain", plan, "--json").stdout)["arena_bytes"]
                self.assertIn(f"arena {arena} bytes per rank", out)
                mine.write_text(TEXT)
                other = self.schedule(plan, "--world-size=16")["seconds"]["total"]
                self.assertEqual(self.simulated(plan, "--world-size=16")[0], f"{other * 1e3:.3f}")

    def test_a_file_works_wherever_a_name_does(self):
        folder = self.dir / "machines"
        folder.mkdir()
        mine, source = folder / "mine.yaml", self.model("gpt2")
        mine.write_text(TEXT)
        config = self.dir / "train.yaml"
        config.write_text(f"strategy: full_shard\nprefetch: auto\nworld_size: 8\ntarget: {mine}\n")
        by_flag = self.compiled(source, "--strategy=full_shard", "--prefetch=auto", "--world-size=8", f"--target={mine}")
        by_file = self.compiled(source, f"--config={config}")
        self.assertEqual(by_flag.read_bytes(), by_file.read_bytes())
        self.assertEqual(self.schedule(by_flag)["target"], "mine")
        printed = self.check("ftc", "compile", "--print-config", f"--config={config}").stdout
        self.assertIn(f"target: '{mine}'", printed)
        times = []
        for options in ((by_flag,), (source, "--strategy=full_shard", "--prefetch=auto", "--world-size=8", f"--target={mine}"),
                        (source, f"--config={config}")):
            report = json.loads(self.check("ftc", "explain", *options, "--json").stdout)
            self.assertEqual((report["target"], report["world_size"]), ("mine", 8))
            times.append(report["step"]["seconds"])
        self.assertEqual(len(set(times)), 1)
        odd = os.fsencode(folder) + b"/odd\xff.yaml"
        with open(odd, "w") as file:
            file.write(TEXT)
        plan = self.dir / "odd.bin"
        self.check("ftc", "compile", source, "--strategy=full_shard", os.fsdecode(b"--target=" + odd), "-o", plan)
        self.assertEqual(self.schedule(plan)["target"], "odd\\xff")
        text = self.check("ftc", "explain", source, "--compare=full_shard,no_shard", "--world-size=8", f"--target={mine}").stdout
        for row in ("on", "time", "of it exposed", "rate of each rank", "MFU", "arena fits its memory"):
            self.assertRegex(text, rf"(?m)^  {row}  .*\S")
        self.assertRegex(text, r"(?m)^  arena fits its memory +yes +yes$")

    def test_a_comparison_leaves_out_what_cannot_run_on_the_ranks(self):
        options = (self.model("llama"), "--world-size=12", "--target=h100-ib")
        text = self.check("ftc", "explain", *options, "--compare=all").stdout
        self.assertIn("\nLeft out\n  hybrid_shard: strategy hybrid_shard shards over the ranks of a node, but 12 ranks make no "
                      "whole number of nodes of 8", text)
        compared = json.loads(self.check("ftc", "explain", *options, "--compare=full_shard,hybrid_shard", "--json").stdout)
        self.assertEqual([p["name"] for p in compared["plans"]], ["full_shard"])
        self.assertEqual([p["name"] for p in compared["left_out"]], ["hybrid_shard"])
        self.assertNotIn("Left out", self.check("ftc", "explain", *options[:1], "--compare=all").stdout)
        done = run("ftc", "explain", *options, "--compare=hybrid_shard,hybrid_shard_zero2")
        self.assertEqual(done.returncode, 65)
        self.assertRegex(done.stderr, r"^ftc: hybrid_shard: strategy hybrid_shard shards over .* R x S = 12\n$")

    def test_numbers_of_a_step_agree_with_each_other(self):
        source = self.model("gpt2-124m", "--batch=4", "--seq=256")
        plan = self.compiled(source, "--strategy=full_shard", "--target=h100", "--world-size=8", "--mixed-precision=bf16",
                             "--micro-steps=2")
        report = json.loads(self.check("ftc", "explain", plan, "--json").stdout)
        step, totals = report["step"], self.schedule(plan)["seconds"]
        self.assertEqual((step["seconds"], step["exposed_seconds"]), (totals["total"], totals["exposed"]))
        self.assertAlmostEqual(step["tokens_per_s_per_rank"] * step["seconds"], 2 * 4 * 256, places=6)
        self.assertAlmostEqual(step["mfu"] * step["seconds"] * 989.4e12, report["flops"]["model"], delta=1e3)
        self.assertIs(step["fits"], True)
        nominal = json.loads(self.check("ftc", "explain", plan, "--json", "--target=cpu").stdout)["step"]
        self.assertEqual((nominal["mfu"], nominal["fits"], nominal["memory_bytes"]), (None, None, None))

    def test_compiling_says_what_does_not_fit(self):
        source = self.model("llama3-8b", "--batch=1", "--seq=2048")

        def remark(*options):
            done = self.check("ftc", "compile", source, "--strategy=full_shard", "-o", self.dir / "plan.bin", *options)
            self.assertLessEqual(done.stderr.count("\n"), 1, done.stderr)
            return done.stderr

        said = remark("--target=h100-ib", "--world-size=1")
        self.assertRegex(said, r"^ftc: the arena of a rank has \S+ GiB with 1 rank \(replica 1 x shard 1\), more than the 79\.6 GiB of h100-ib: ")
        self.assertEqual(remark("--target=h100-ib", "--world-size=8"), "")
        self.assertEqual(remark("--world-size=1"), "", "the nominal machine does not know its memory")
        plan = self.dir / "plan.bin"
        remark("--target=h100-ib", "--world-size=8")
        arena = json.loads(self.check("ftc", "explain", plan, "--json").stdout)["arena_bytes"]
        for mebibytes, word in ((arena // 2**20 - 1, "more than"), (arena * 100 // 98 // 2**20, "nearly all of"),
                                (arena * 100 // 90 // 2**20, "")):
            mine = self.dir / "mine.yaml"
            mine.write_text(TEXT.replace("capacity_mib: 40000", f"capacity_mib: {mebibytes}").replace("per_node: 4", "per_node: 8"))
            said = remark(f"--target={mine}", "--world-size=8")
            self.assertIn(word, said)
            self.assertEqual(said == "", word == "")
            fits = json.loads(self.check("ftc", "explain", plan, "--json").stdout)["step"]["fits"]
            self.assertIs(fits, word != "more than")

    def test_above_93_percent_of_the_memory_is_tight(self):
        """Whether the target announces what lies beside the arena or not."""
        plan = self.compiled(self.model("gpt2-124m", "--batch=2", "--seq=128"), "--strategy=no_shard", "--code=none")
        mine = self.dir / "tight.yaml"
        for beside in (0, 300):
            mine.write_text(TEXT.replace("capacity_mib: 40000", f"capacity_mib: 40000, beside_mib: {beside}, communicator_mib: 0"))
            report = json.loads(self.check("ftc", "explain", plan, f"--target={mine}", "--json").stdout)
            taken = (report["arena_bytes"] + (report["beside_arena_bytes"] or {"total": 0})["total"]) / 2**20
            self.assertGreater(taken, 1000)
            for part, word in ((0.99, "no"), (1.005, "tight"), (1.06, "tight"), (1.09, "yes")):
                mine.write_text(TEXT.replace("capacity_mib: 40000", f"capacity_mib: {taken * part:.0f}, beside_mib: {beside}, communicator_mib: 0"))
                self.assertRegex(self.check("ftc", "explain", plan, f"--target={mine}").stdout, rf"(?m)^  arena fits its memory +{word}\b")

    def test_bad_targets_are_one_line(self):
        source, plan = self.model("gpt2"), self.plan("gpt2", "full_shard")
        bad = self.dir / "bad.yaml"
        bad.write_text(TEXT.replace("  node: {giga", "  node: {gigga"))
        config = self.dir / "train.yaml"
        config.write_text(f"strategy: full_shard\ntarget: {bad}\n")
        compile_ = ("ftc", "compile", source, "-o", self.dir / "p.bin")
        message = f"{bad}:10: unknown key 'links.node.giggabytes_per_s', did you mean 'links.node.gigabytes_per_s'?"
        for status, text, command in (
                (65, message, (*compile_, "--strategy=full_shard", f"--target={bad}")),
                (65, message, (*compile_, f"--config={config}")),
                (65, message, ("ftc", "explain", plan, f"--target={bad}")),
                (65, message, ("ftc", "explain", source, "--strategy=full_shard", f"--target={bad}")),
                (74, "absent.yaml", (*compile_, "--strategy=full_shard", f"--target={self.dir}/absent.yaml")),
                (74, "absent.yaml", ("ftc", "explain", plan, f"--target={self.dir}/absent.yaml")),
                (2, "unknown target 'h1000', did you mean 'h100'?", (*compile_, "--strategy=full_shard", "--target=h1000")),
                (2, "unknown target 'h1000', did you mean 'h100'?", ("ftc", "explain", plan, "--target=h1000"))):
            with self.subTest(command=command[1:3], text=text):
                done = run(*command)
                self.assertEqual(done.returncode, status, done.stderr)
                self.assertIn(text, done.stderr)
                self.assertEqual(done.stderr.count("\n"), 1, done.stderr)
        self.assertFalse((self.dir / "p.bin").exists())

    def test_equal_layers_share_a_row(self):
        plan = self.compiled(self.model("llama", "--layers=80"), "--strategy=full_shard", "--world-size=4")
        text = self.check("ftc", "explain", plan).stdout
        table = text[text.index("Sent by each rank"):text.index("FLOPs of each rank")].splitlines()
        rows = [line for line in table if "layers." in line]
        self.assertLessEqual(len(rows), 3, "\n".join(rows))
        joined = [match for match in (re.search(r"layers\.(\d+)\.\.(\d+) \((\d+) units, each\)", row) for row in rows) if match]
        self.assertTrue(joined)
        self.assertEqual(sum(int(match[3]) for match in joined) + len(rows) - len(joined), 80)
        self.assertTrue(all(int(m[2]) - int(m[1]) + 1 == int(m[3]) for m in joined))
        units = json.loads(self.check("ftc", "explain", plan, "--json").stdout)["traffic"]["by_unit"]
        self.assertEqual(len([unit for unit in units if "layers." in unit["unit"]]), 80)


if __name__ == "__main__":
    unittest.main()
