"""A run goes on with other ranks, strategies, wraps, batches and micro-steps: the state comes to the bit, each sequence once."""

import random
import unittest

from checkpoint_runs import SEQ, CheckpointRuns, checkpoints, manifest, tensors
from harness import metrics

# 8 -> 4 -> 6 -> 1 -> 8 ranks: what each leg writes, how its parameters are cut.
LEGS = (
    (8, "full", ("--strategy=full_shard",)),
    (4, "sharded", ("--strategy=no_shard", "--wrap=none")),
    (6, "full", ("--strategy=hybrid_shard", "--world-size=6", "--mesh=replica:2,shard:3")),
    (1, "sharded", ("--strategy=zero1", "--wrap=size", "--min-num-params=3000")),
    (8, "full", ("--strategy=shard_grad_op",)),
    (8, "sharded", ("--strategy=hybrid_shard_zero2", "--world-size=8", "--mesh=replica:4,shard:2", "--wrap=size",
                    "--min-num-params=5000")),
    (3, "full", ("--strategy=full_shard", "--persistence-threshold=500", "--offload=optimizer")),
)


def mesh_of(options):
    return [option for option in options if option.startswith("--mesh=")]


class Reshape(CheckpointRuns):
    def legs(self, model, common, model_options=("--batch=1",)):
        for number, (world, kind, options) in enumerate(LEGS):
            yield number, world, kind, mesh_of(options), self.tiny(model, *options, *common, model_options=model_options)

    def walk(self, model, common, trained=3):
        """Trains a little at the first leg, then carries the state through all others, with no step in between. Returns the
        tensors of each leg that writes whole ones, and what the manifests say of the position."""
        seen, before = [], None
        for number, world, kind, mesh, plan in self.legs(model, common):
            folder = self.dir / f"leg{number}"
            options = [f"--checkpoint-dir={folder}", f"--state-dict-type={kind}", *mesh]
            options += [f"--steps={trained}", "--lr=0.01"] if before is None else [f"--resume={before}"]
            done = self.go(plan, world, *options)
            if before is not None:
                self.assertIn(f"resumed from '{before}' after {trained} steps", done.stdout)
            before = checkpoints(folder)[trained]
            said = manifest(before)
            self.assertEqual((said["type"], said["state"]["replica"] * said["state"]["shard"]), (kind, world))
            seen.append(({key: said[key] for key in ("position", "health", "run")}, tensors(before) if kind == "full" else None))
        return seen

    def assert_same_state(self, found, expected):
        self.assertEqual(set(found), set(expected))
        for name, value in expected.items():
            self.assertEqual(found[name][:2], value[:2], name)
            self.assertTrue(found[name][2] == value[2], f"the bytes of {name} are others")

    def test_the_state_comes_back_to_the_bit(self):
        cases = (("gpt2", ()), ("llama", ("--mixed-precision=bf16",)),
                 ("free_transformer", ("--mixed-precision=fp16", "--frozen=*.0.*", "--optimizer=sgd", "--momentum=0.9")),
                 ("llama", ("--mixed-precision=bf16", "--master-weights=off", "--stochastic-rounding")))
        for case, (model, common) in enumerate(cases):
            with self.subTest(model=model, options=common):
                self.dir = self.dir.parent / f"case{case}"
                self.dir.mkdir()
                legs = self.walk(model, common)
                whole = [state for _, state in legs if state is not None]
                self.assertGreater(len(whole), 3)
                for state in whole[1:]:
                    self.assert_same_state(state, whole[0])
                self.assertTrue(any(any(data) for _, _, data in whole[0].values()))
                self.assertEqual([said for said, _ in legs[1:]], [legs[0][0]] * (len(legs) - 1))

    def test_steps_go_on_alike_wherever_the_state_was(self):
        """The detour over all legs changes no bit of the steps that follow at the first one's ranks."""
        common = ("--mixed-precision=bf16",)
        first = next(self.legs("gpt2", common))
        _, world, _, _, plan = first
        straight = self.dir / "m.jsonl"
        self.go(plan, world, "--steps=6", "--lr=0.01", f"--metrics={straight}")
        self.walk("gpt2", common)
        last = checkpoints(self.dir / f"leg{len(LEGS) - 1}")[3]
        detour = self.dir / "detour.jsonl"
        self.go(plan, world, "--steps=6", "--lr=0.01", f"--metrics={detour}", f"--resume={last}")
        key = lambda rows: [(row["step"], row["loss"], row["grad_norm"]) for row in rows]
        self.assertEqual(key(metrics(detour)), key(metrics(straight))[3:])

    def still(self):
        """Options of a run that does not learn, from weights with which the losses of sequences lie far apart."""
        weights = self.shared / "weights.safetensors"
        if not weights.exists():
            self.go(self.tiny("llama", "--strategy=no_shard"), 1, "--steps=60", "--lr=0.02", f"--save-weights={weights}")
        return ["--lr=0", f"--init={weights}"]

    def losses_by_position(self, data, count, *options):
        """One sequence a step: its loss tells it."""
        plan, out = self.tiny("llama", "--strategy=no_shard"), self.dir / "one.jsonl"
        self.go(plan, 1, f"--steps={count}", *self.still(), f"--metrics={out}", *options, data=data)
        return [row["loss"] for row in metrics(out)]

    def noise(self, name, sequences):
        """Sequences of few letters each, so that their losses lie far apart."""
        draw, text = random.Random(name), bytearray()
        for _ in range(sequences):
            letters = [draw.randrange(32, 127) for _ in range(draw.randrange(1, 5))]
            text += bytes(draw.choice(letters) for _ in range(SEQ))
        path = self.dir / name
        path.write_bytes(bytes(text) + b".")
        return path

    # Ranks, batch, micro-steps, strategy, and steps that the leg does.
    ROUTE = ((8, 1, 1, "full_shard", 1), (4, 2, 1, "no_shard", 2), (6, 1, 2, "shard_grad_op", 1), (1, 3, 1, "zero1", 3),
             (2, 1, 3, "full_shard", 2), (8, 1, 1, "full_shard", 2))

    def route(self, data, *options):
        """Rows of metrics of all legs, each with how many sequences its step took."""
        rows, done, before = [], 0, None
        for number, (world, batch, micro, strategy, steps) in enumerate(self.ROUTE):
            plan = self.tiny("llama", f"--strategy={strategy}", f"--micro-steps={micro}", model_options=(f"--batch={batch}",))
            out, folder, done = self.dir / f"route{number}.jsonl", self.dir / f"route{number}", done + steps
            more = [f"--resume={before}"] if before else self.still()
            self.go(plan, world, f"--steps={done}", f"--metrics={out}", f"--checkpoint-dir={folder}",
                    f"--state-dict-type={('full', 'sharded')[number % 2]}", *more, *options, data=data)
            before = max(checkpoints(folder).items())[1]
            rows += [(row["step"], row["loss"], world * batch * micro) for row in metrics(out)]
        self.assertEqual([step for step, _, _ in rows], list(range(len(rows))))
        return rows, manifest(before)

    def assert_row_of_sequences(self, rows, known):
        """Each step's loss is the mean over the sequences that are next, and over no others near them."""
        at = 0
        for step, loss, count in rows:
            mean = lambda begin: sum(known[begin:begin + count]) / count
            self.assertAlmostEqual(loss, mean(at), delta=1e-6 * loss, msg=f"step {step}: sequences {at} to {at + count - 1}")
            for begin in set(range(max(0, at - 9), min(len(known) - count, at + 9) + 1)) - {at}:
                self.assertNotAlmostEqual(loss, mean(begin), delta=1e-5 * loss, msg=f"step {step} is ambiguous")
            at += count
        return at

    def test_every_sequence_of_the_epoch_once(self):
        total = sum(w * b * m * steps for w, b, m, _, steps in self.ROUTE)
        for number, shuffle in enumerate(("on", "off")):
            with self.subTest(shuffle=shuffle):
                data = self.noise(f"data{number}", total)
                known = self.losses_by_position(data, total, f"--shuffle={shuffle}")
                self.assertEqual(len(set(known)), total)
                rows, said = self.route(data, f"--shuffle={shuffle}")
                self.assertEqual(self.assert_row_of_sequences(rows, known), total)
                self.assertEqual(said["position"]["sequences"], total)
                self.assertEqual(said["position"]["micro_steps"], sum(m * steps for _, _, m, _, steps in self.ROUTE))

    def test_sources_with_weights_go_on_too(self):
        total = sum(w * b * m * steps for w, b, m, _, steps in self.ROUTE)
        data = f"{self.noise('a', 20)}:0.7,{self.noise('b', 9)}:0.3"
        known = self.losses_by_position(data, total)
        rows, _ = self.route(data)
        self.assertEqual(self.assert_row_of_sequences(rows, known), total)

    def test_one_pass_ends_with_the_same_sequence(self):
        """Without --steps a run is one pass over the data: its end is counted in sequences, whatever a step takes now."""
        data = self.noise("pass", 41)
        known = self.losses_by_position(data, 82)
        plan, folder = self.tiny("llama", "--strategy=full_shard"), self.dir / "begun"
        self.go(plan, 4, *self.still(), f"--checkpoint-dir={folder}", "--save-every=1", data=data)
        self.assertEqual(sorted(checkpoints(folder)), list(range(1, 12)))  # 44 sequences
        for world, batch, steps in ((2, 3, 5), (1, 1, 29), (3, 2, 5)):
            with self.subTest(world=world, batch=batch):
                out = self.dir / "rest.jsonl"
                out.unlink(missing_ok=True)
                other = self.tiny("llama", "--strategy=no_shard", model_options=(f"--batch={batch}",))
                self.go(other, world, f"--metrics={out}", f"--resume={checkpoints(folder)[3]}", data=data)
                rows = metrics(out)
                self.assertEqual([row["step"] for row in rows], list(range(3, 3 + steps)))
                count = world * batch
                for number, row in enumerate(rows):
                    begin = 12 + number * count
                    self.assertAlmostEqual(row["loss"], sum(known[begin:begin + count]) / count, delta=1e-6 * row["loss"])
                self.assertIn(41, range(12 + (steps - 1) * count + 1, 12 + steps * count + 1))


if __name__ == "__main__":
    unittest.main()
