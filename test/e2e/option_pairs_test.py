"""No option changes a bit, alone or with any other: every pair of values of two options occurs in some run here.

At one model, world size, precision, choice of what is trained, number of micro-steps, type of their sum and when it is reduced all runs have the losses and gradient norms of one plain run, and allocate in both
arenas what explain announced.
"""

import json
import unittest

from covering import covering_rows
from harness import EndToEnd

OPTIONS = {
    "model": ("gpt2", "llama", "free_transformer"),
    "strategy": ("no_shard", "zero1", "shard_grad_op", "full_shard", "hybrid_shard", "hybrid_shard_zero2"),
    "world": (1, 2, 3, 4),
    "remat": ("none", "every_n:1", "segments:2", "budget"),
    "offload": ("none", "optimizer", "optimizer:step", "activations", "parameters"),
    "prefetch": ("none", "pre", "post", "auto"),
    "wrap": ("transformer", "size", "none"),
    "persistence": (0, 1000),
    "precision": ("no", "bf16", "bf16 alone", "fp8", "fp8 blockwise"),
    "trained": ("all", "not *.0.*", "adapters"),
    "micro_steps": (1, 2),
    "sums": ("fp32", "bf16"),
    "accumulate": ("last", "each"),
    "threads": (1, 2),
    "buckets": (0, 1),
}
# These change what is computed; all others only how.
MEANING = ("model", "world", "precision", "trained", "micro_steps", "sums", "accumulate")
STEPS = 4
PLAIN = {"strategy": "no_shard", "remat": "none", "offload": "none", "prefetch": "none", "wrap": "transformer", "persistence": 0,
         "buckets": 0, "threads": 1}


class OptionPairs(EndToEnd):
    def setUp(self):
        super().setUp()
        self.references = {}

    def mesh(self, row):
        """Hybrid strategies take both axes where there are enough ranks."""
        if row["strategy"].startswith("hybrid") and row["world"] == 4:
            return ["--mesh=replica:2,shard:2"]
        return [f"--mesh=replica:1,shard:{row['world']}"] if row["strategy"].startswith("hybrid") else []

    def model(self, name):
        path = self.shared / f"{name}.mlir"
        if not path.exists():
            self.check("ftc", "model", name, "-o", path)
        return path

    def flags(self, row):
        flags = [f"--strategy={row['strategy']}", f"--offload={row['offload']}", f"--prefetch={row['prefetch']}",
                 f"--wrap={row['wrap']}", f"--persistence-threshold={row['persistence']}",
                 f"--mixed-precision={row['precision'].split()[0]}", "--min-num-params=60000", f"--world-size={row['world']}"]
        if row["micro_steps"] > 1:
            flags += [f"--accumulate={row['accumulate']}"]
        flags += [f"--micro-steps={row['micro_steps']}", f"--gather-bucket-mb={row['buckets']}",
                  f"--reduce-bucket-mb={row['buckets']}"]
        flags += {"all": [], "not *.0.*": ["--frozen=*.0.*"], "adapters": ["--lora=r:3,alpha:4,targets:all-linear,dropout:0.1"]}[row["trained"]]
        if row["precision"] != "no":
            # A 16-bit reduction rounds once more between the axes of hybrid strategies.
            flags += ["--reduce-dtype=fp32", f"--accumulate-dtype={row['sums']}"]
        if row["precision"] == "fp8 blockwise":
            flags += ["--fp8-recipe=blockwise"]
        if row["precision"] == "bf16 alone":
            flags += ["--master-weights=off", "--stochastic-rounding"]
        return flags + self.mesh(row) if self.mesh(row) else flags

    def compile(self, row):
        flags, plan = self.flags(row), self.dir / "plan.bin"
        if row["remat"] == "budget":
            # Halfway between what keeping everything and recomputing everything take.
            peaks = []
            for policy in ("none", "every_n:1"):
                self.check("ftc", "compile", self.model(row["model"]), *flags, f"--remat={policy}", "-o", plan)
                peaks.append(self.announced(plan, row)["arena_bytes"])
            flags.append(f"--remat=budget:{max(sum(peaks) // 2, peaks[1])}")
        else:
            flags.append(f"--remat={row['remat']}")
        self.check("ftc", "compile", self.model(row["model"]), *flags, "-o", plan)
        self.check("ftc", "verify", plan)
        return plan

    def announced(self, plan, row):
        return json.loads(
            self.check("ftc", "explain", plan, f"--world-size={row['world']}", *self.mesh(row), "--json").stdout)

    def run_row(self, row):
        plan = self.compile(row)
        announced = self.announced(plan, row)
        rows = self.train(plan, row["world"], *self.mesh(row), f"--threads={row['threads']}", steps=STEPS)
        for key in ("arena_bytes", "host_arena_bytes"):
            self.assertEqual({r.get(key, 0) for r in rows}, {announced[key]}, key)
        # A budget may find computing again cheaper than a way to the host and back.
        if row["offload"] != "none" and (row["offload"], row["remat"]) != ("activations", "budget"):
            self.assertGreater(announced["host_arena_bytes"], 0)
        return [(r["loss"], r["grad_norm"]) for r in rows]

    def meaning(self, row):
        """What of it decides the bits: how sums are made says nothing where there are none, and that of fp32 is fp32."""
        row = dict(row)
        if row["micro_steps"] == 1 or row["precision"] == "no":
            row["sums"] = "fp32"
        if row["micro_steps"] == 1:
            row["accumulate"] = "last"
        return tuple(row[name] for name in MEANING)

    def test_every_pair_of_options(self):
        rows = covering_rows(OPTIONS)
        for row in rows:
            with self.subTest(**row):
                key = self.meaning(row)
                if key not in self.references:
                    self.references[key] = self.run_row({**row, **PLAIN})
                self.assertEqual(self.run_row(row), self.references[key])


if __name__ == "__main__":
    unittest.main()
