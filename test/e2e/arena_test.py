"""The arena is within a thousandth of the most bytes live at once, which nothing can go below, on every model of the zoo, mixtures of experts within a hundredth."""

import json
import re
import unittest

from harness import EndToEnd

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


if __name__ == "__main__":
    unittest.main()
