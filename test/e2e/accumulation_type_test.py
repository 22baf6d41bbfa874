"""The type of sums of gradients over micro-steps: what each micro-step makes is added in fp32 and rounded once, or in 16 bits as often as it is added."""

import array
import math
import struct
import unittest

from bf16_weights_test import tensors
from harness import EndToEnd

MICRO_STEPS, BATCH, SEQ = 16, 2, 64
# A step that leaves little of the weights, so that their difference has the gradient's digits.
LR = 1024.0
STEP = ("--strategy=full_shard", "--optimizer=sgd", "--momentum=0", "--weight-decay=0", "--clip=0", "--param-dtype=bf16")


def bf16(x):
    """To nearest, ties to even."""
    (bits,) = struct.unpack("<I", struct.pack("<f", x))
    return struct.unpack("<f", struct.pack("<I", bits + 0x7FFF + (bits >> 16 & 1) & 0xFFFF0000))[0]


def distance(ours, wanted):
    """Relative, of all elements together."""
    return math.dist(ours, wanted) / math.hypot(*wanted)


class AccumulationType(EndToEnd):
    def weights(self, plan, data, lr):
        saved = self.dir / "saved.safetensors"
        self.train(plan, 1, "--shuffle=off", "--threads=1", f"--lr={lr}", f"--save-weights={saved}", steps=1, data=data)
        return {name: array.array("f", data) for name, (_, _, data) in tensors(saved).items()}

    def plan_of(self, model, *options):
        source, plan = self.dir / f"{model}.mlir", self.dir / "plan.bin"
        if not source.exists():
            self.check("ftc", "model", model, f"--batch={BATCH}", f"--seq={SEQ}", "-o", source)
        self.check("ftc", "compile", source, *STEP, *options, "-o", plan)
        self.check("ftc", "verify", plan)
        return plan

    def gradients(self, before, plan, data):
        after = self.weights(plan, data, LR)
        return {name: [(a - b) / LR for a, b in zip(values, after[name])] for name, values in before.items()}

    def parts(self, before, plan):
        """Gradients of the batches of a step, each of its own."""
        part, tokens = self.dir / "part.txt", BATCH * SEQ
        text = self.text.read_bytes()
        for i in range(MICRO_STEPS):
            part.write_bytes(text[i * tokens:(i + 1) * tokens + 1])
            yield self.gradients(before, plan, part)

    def check_model(self, model):
        one = self.plan_of(model, "--reduce-dtype=fp32")
        before = self.weights(one, self.text, 0)
        parts = list(self.parts(before, one))
        exact, narrow = {}, {}
        for name in before:
            columns = list(zip(*(part[name] for part in parts)))
            exact[name] = [math.fsum(column) / MICRO_STEPS for column in columns]
            # As PyTorch adds to a .grad of bf16.
            narrow[name] = [0.0] * len(columns)
            for part in parts:
                narrow[name] = [bf16(s + bf16(g / MICRO_STEPS)) for s, g in zip(narrow[name], part[name])]

        def errors(*options):
            ours = self.gradients(before, self.plan_of(model, f"--micro-steps={MICRO_STEPS}", *options), self.text)
            return {name: distance(ours[name], exact[name]) for name in exact}

        wide, once = errors("--reduce-dtype=fp32"), errors("--reduce-dtype=bf16")
        each = errors("--reduce-dtype=bf16", "--accumulate=each")
        often = errors("--reduce-dtype=fp32", "--accumulate-dtype=bf16")
        for name in exact:
            with self.subTest(model=model, name=name):
                rounded = distance(narrow[name], exact[name])
                self.assertGreater(rounded, 1e-3)
                # Sums of f32 in another order.
                self.assertLess(wide[name], 1e-5)
                # Nothing is lost but by rounding the sum.
                self.assertLess(once[name], 1.001 * distance([bf16(g) for g in exact[name]], exact[name]))
                self.assertLess(each[name], rounded)
                self.assertLess(rounded / 3, often[name])
                # A tied table is added to twice.
                self.assertLess(often[name], 2 * rounded)

    def test_gpt2(self):
        self.check_model("gpt2")

    def test_llama(self):
        self.check_model("llama")

    def accumulated(self, *options):
        at_rest = self.explain(self.plan_of("gpt2", "--micro-steps=2", *options), 4)["at_rest"]
        return at_rest["of_gradients_accumulated"]

    def test_sums_are_counted(self):
        """Whole where they are reduced once, slices where each micro-step is; whatever they are reduced in."""
        for when, ranks in (("last", 1), ("each", 4)):
            wide = self.accumulated(f"--accumulate={when}")
            self.assertEqual(wide, self.accumulated(f"--accumulate={when}", "--reduce-dtype=bf16"))
            self.assertEqual(wide, 2 * self.accumulated(f"--accumulate={when}", "--accumulate-dtype=bf16"))
            self.assertEqual(self.accumulated("--accumulate=last"), wide * ranks)


if __name__ == "__main__":
    unittest.main()
