"""The arena is within a thousandth of the most bytes live at once, which nothing can go below, on every model of the zoo, mixtures of experts within a hundredth."""

import json
import re
import unittest

from harness import BIN, EndToEnd

LIMIT = 1.001
# Layers of these have units of a gigabyte and more beside activations of kilobytes: the arrangements that are found are up to
# 0.7% above the bytes live at once. Whether less is possible has not been shown.
LIMIT_OF_EXPERTS = 1.01


class Arena(EndToEnd):
    def presets(self):
        """(family, preset) of `ftc model --list`."""
        found, family = [], None
        for line in self.check("ftc", "model", "--list").stdout.splitlines():
            if match := re.match(r"(\w+): ", line):
                family = match[1]
            elif (match := re.match(r"  (\S+)\s+\d", line)) and family:
                found.append((family, match[1]))
        return found

    def check_tight(self, source, *options):
        out = self.check("ftc", "explain", source, "--compare=all", "--json", *options, timeout=600).stdout
        for report in json.loads(out)["plans"]:
            with self.subTest(model=source.stem, strategy=report["name"], options=options):
                limit = LIMIT_OF_EXPERTS if source.stem.startswith(("mixtral", "qwen3_moe")) else LIMIT
                self.assertLessEqual(report["arena_bytes"], limit * report["max_live_bytes"])
                host = report["host"]
                self.assertLessEqual(report["host_arena_bytes"], LIMIT * max(host["max_live_bytes"], 1))

    def test_every_preset(self):
        presets = self.presets()
        self.assertGreaterEqual(len(presets), 17)
        for family, preset in presets:
            source = self.shared / f"{family}-{preset}.mlir"
            size = ["--batch=1"] if family == "vit" else ["--batch=1", "--seq=64"]
            self.check("ftc", "model", family, f"--preset={preset}", *size, "-o", source)
            for world in (1, 8) if preset == "debug" else (8,):
                self.check_tight(source, f"--world-size={world}")

    def test_options(self):
        """Lifetimes that recomputation, offload, precision and accumulation make."""
        source = self.shared / "gpt2-124m.mlir"
        self.check("ftc", "model", "gpt2-124m", "--batch=2", "--seq=256", "-o", source)
        for options in (("--mixed-precision=bf16",), ("--micro-steps=4",), ("--prefetch=none",), ("--wrap=none",),
                        ("--remat=every_n:1",), ("--remat=segments:3",), ("--remat=full",), ("--offload=optimizer",),
                        ("--offload=optimizer:step",),
                        ("--offload=activations",)):
            self.check_tight(source, "--world-size=4", *options)

    def test_large_buffers_beside_small_ones(self):
        """Gigabytes beside kilobytes: looking for the smallest arena stays within its work and within a gigabyte of memory."""
        source = self.shared / "large.mlir"
        self.check("ftc", "model", "llama", "--preset=llama3-70b", "--hidden=16384", "--layers=5", "--heads=128", "--ffn=53248",
                   "--batch=1", "--seq=8192", "-o", source)
        machine = ["--strategy=full_shard", "--world-size=16384", "--target=h100-ib", "--mixed-precision=bf16"]
        limited = ["bash", "-c", 'ulimit -v 1000000; exec "$0" "$@"', BIN / "ftc"]
        for remat in ("none", "ops:norms"):
            report = json.loads(self.check(*limited, "explain", source, *machine, f"--remat={remat}", "--json", timeout=120).stdout)
            self.assertLessEqual(report["arena_bytes"], 1.005 * report["max_live_bytes"])


if __name__ == "__main__":
    unittest.main()
