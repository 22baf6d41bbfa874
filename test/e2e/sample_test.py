"""Text from the model: while it trains, and from weights; the same whatever the ranks and the strategy, and training does not notice it."""

import json
import math
import pathlib
import re
import struct
import unittest

from covering import covering_rows
from harness import BIN, STRATEGIES, EndToEnd, metrics, run

OPTIONS = {
    "model": ("gpt2", "llama"),
    "kind": ("", "--evaluate"),
    "strategy": ("no_shard", "zero1", "shard_grad_op", "full_shard", "hybrid_shard", "hybrid_shard_zero2"),
    "world": (1, 2, 3, 4),
    "remat": ("none", "full"),
    "offload": ("none", "optimizer", "optimizer:step", "activations", "parameters"),
    "prefetch": ("none", "pre", "post", "auto"),
    "wrap": ("transformer", "size", "none"),
    "persistence": (0, 1000),
    "precision": ("no", "bf16", "bf16 alone"),
    "buckets": (0, 1),
}


def tensors_of(path):
    """Name -> rows of floats, of a file of fp32 safetensors."""
    data = pathlib.Path(path).read_bytes()
    (length,) = struct.unpack_from("<Q", data)
    found = {}
    for name, entry in json.loads(data[8:8 + length]).items():
        if name == "__metadata__":
            continue
        begin, end = entry["data_offsets"]
        values = struct.unpack(f"<{(end - begin) // 4}f", data[8 + length + begin:8 + length + end])
        columns = entry["shape"][-1]
        found[name] = [values[i:i + columns] for i in range(0, len(values), columns)]
    return found


def said_by_rank_0(text):
    """Without what ftrun puts before each line."""
    return re.sub(r"^\[rank 0\] ", "", text, flags=re.MULTILINE)


class SlowGpt2:
    """GPT-2's debug preset in plain Python, token after token, with the keys and values of those before."""

    def __init__(self, path):
        self.weights = tensors_of(path)
        self.layers = [{"k": [], "v": []} for _ in range(2)]
        self.at = 0

    def row(self, name):
        return self.weights[name][0]

    def norm(self, x, name):
        mean = sum(x) / len(x)
        scale = 1 / math.sqrt(sum((v - mean) ** 2 for v in x) / len(x) + 1e-5)
        return [(v - mean) * scale * g + b for v, g, b in zip(x, self.row(name + ".weight"), self.row(name + ".bias"))]

    def linear(self, x, name):
        y = list(self.row(name + ".bias"))
        for v, row in zip(x, self.weights[name + ".weight"]):
            for i, w in enumerate(row):
                y[i] += v * w
        return y

    def attend(self, x, cache, heads=4):
        size = len(x)
        qkv, head = x, size // 3 // heads
        q, k, v = qkv[:size // 3], qkv[size // 3:2 * size // 3], qkv[2 * size // 3:]
        cache["k"].append(k)
        cache["v"].append(v)
        out = []
        for h in range(heads):
            part = slice(h * head, (h + 1) * head)
            scores = [sum(a * b for a, b in zip(q[part], key[part])) / math.sqrt(head) for key in cache["k"]]
            largest = max(scores)
            shares = [math.exp(s - largest) for s in scores]
            for i in range(h * head, (h + 1) * head):
                out.append(sum(p * value[i] for p, value in zip(shares, cache["v"])) / sum(shares))
        return out

    def logits(self, token):
        """Of what follows `token`, which follows those given before."""
        x = [a + b for a, b in zip(self.weights["transformer.wte.weight"][token], self.weights["transformer.wpe.weight"][self.at])]
        self.at += 1
        for number, cache in enumerate(self.layers):
            name = f"transformer.h.{number}."
            y = self.attend(self.linear(self.norm(x, name + "ln_1"), name + "attn.c_attn"), cache)
            x = [a + b for a, b in zip(x, self.linear(y, name + "attn.c_proj"))]
            y = self.linear(self.norm(x, name + "ln_2"), name + "mlp.c_fc")
            y = [0.5 * v * (1 + math.tanh(math.sqrt(2 / math.pi) * (v + 0.044715 * v ** 3))) for v in y]
            x = [a + b for a, b in zip(x, self.linear(y, name + "mlp.c_proj"))]
        x = self.norm(x, "transformer.ln_f")
        return [sum(a * b for a, b in zip(x, row)) for row in self.weights["transformer.wte.weight"]]

    def continued(self, prompt, count):
        for token in prompt:
            logits = self.logits(token)
        made = []
        for _ in range(count):
            made.append(max(range(len(logits)), key=logits.__getitem__))
            if len(made) < count:
                logits = self.logits(made[-1])
        return made


class Sample(EndToEnd):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.rhyme = cls.shared / "rhyme.txt"
        cls.rhyme.write_text("one two three four five six seven eight nine ten\n" * 200)

    def compile(self, model, strategy, *options):
        """A plan of a debug preset that can continue a text."""
        source = self.shared / f"{model}.mlir"
        if not source.exists():
            self.check("ftc", "model", model, "-o", source)
        path = self.shared / ("-".join([model, strategy, *options]).replace("=", "_").replace(":", "_") + "-s.bin")
        if not path.exists():
            self.check("ftc", "compile", source, f"--strategy={strategy}", "--sample", *options, "-o", path)
        return path

    def trained(self, plan, world, *options, steps=6, data=None):
        """Rows of steps and of samples, and what was printed."""
        out = self.dir / "metrics.jsonl"
        out.unlink(missing_ok=True)
        done = self.check("ftrun", f"--nproc-per-node={world}", "--standalone", BIN / "ftexec", plan, f"--data={data or self.text}",
                          f"--steps={steps}", f"--metrics={out}", "--progress=off", "--threads=1", *options)
        rows = metrics(out)
        return [row for row in rows if "loss" in row], [row for row in rows if "sample" in row], said_by_rank_0(done.stdout)

    def generate(self, plan, world, *options, count=24, prompt="Licensed under"):
        out = self.dir / "generated.jsonl"
        threads = () if "--threads=1" in options else ("--threads=1",)
        done = self.check("ftrun", f"--nproc-per-node={world}", "--standalone", BIN / "ftexec", plan, f"--generate={count}",
                          f"--prompt={prompt}", f"--metrics={out}", *threads, *options)
        (row,) = metrics(out)
        self.assertEqual(said_by_rank_0(done.stdout), row["sample_text"] + "\n")
        return row["sample_tokens"]

    def test_changes_no_bit_of_training_and_is_the_same_for_all(self):
        weights, shown = [], {}
        for strategy in STRATEGIES:
            for options in ((), ("--mixed-precision=bf16",), ("--micro-steps=2", "--remat=full", "--offload=optimizer,parameters")):
                plan, curves = self.compile("gpt2", strategy, *options), []
                for sampling in ((), ("--sample-every=2", "--prompt=The ", "--sample-tokens=20", "--temperature=0.7")):
                    with self.subTest(strategy=strategy, options=options, sampling=sampling):
                        path = self.dir / f"{len(weights)}.safetensors"
                        steps, samples, text = self.trained(plan, 3, f"--save-weights={path}", "--lr=0.01", *sampling, steps=5)
                        curves.append([(row["loss"], row["grad_norm"]) for row in steps] + [path.read_bytes()])
                        self.assertEqual([row["step"] for row in samples], [1, 3, 4] if sampling else [])
                        if sampling:
                            said = [(row["sample_tokens"], row["sample_text"]) for row in samples]
                            self.assertEqual(shown.setdefault(options, said), said)
                            for row in samples:
                                self.assertIn(f"sample after step {row['step'] + 1}:\nThe {row['sample_text']}\n", text)
                self.assertEqual(*curves)

    def test_a_model_that_learns_writes_what_it_read(self):
        out = self.dir / "metrics.jsonl"
        self.check("ftexec", self.compile("gpt2", "full_shard"), f"--data={self.rhyme}", "--steps=150", "--lr=0.003", "--sample-every=150",
                   "--prompt=ten\none two ", "--sample-tokens=30", f"--metrics={out}", "--progress=off")
        (row,) = [row for row in metrics(out) if "sample" in row]
        self.assertEqual(row["sample_text"], "three four five six seven eigh")

    def test_greedy_is_that_of_a_slow_model(self):
        weights = self.dir / "weights.safetensors"
        plan = self.compile("gpt2", "full_shard")
        self.trained(plan, 1, f"--save-weights={weights}", "--lr=0.003", steps=150, data=self.rhyme)
        expected = SlowGpt2(weights).continued(b"six two ", 24)
        self.assertGreater(len(set(expected)), 4)
        for strategy in ("no_shard", "full_shard"):
            for kind in ((), ("--evaluate",)):
                for world in (1, 3):
                    made = self.generate(self.compile("gpt2", strategy, *kind), world, f"--init={weights}", prompt="six two ")
                    self.assertEqual(made, expected, (strategy, kind, world))

    def test_drawn_tokens_follow_the_seed_and_nothing_else(self):
        weights = self.dir / "weights.safetensors"
        plan = self.compile("llama", "full_shard")
        self.trained(plan, 1, f"--save-weights={weights}", "--lr=0.005", steps=60)
        init = f"--init={weights}"
        greedy = self.generate(plan, 1, init, count=80)
        drawn = self.generate(plan, 1, init, "--temperature=0.8", count=80)
        self.assertNotEqual(drawn, greedy)
        for other, world in ((plan, 3), (self.compile("llama", "no_shard", "--evaluate"), 2)):
            self.assertEqual(self.generate(other, world, init, "--temperature=0.8", count=80), drawn)
        self.assertNotEqual(self.generate(plan, 1, init, "--temperature=0.8", "--seed=7", count=80), drawn)
        self.assertEqual(self.generate(plan, 1, init, "--temperature=0.8", "--top-k=1", count=80), greedy)
        self.assertEqual(self.generate(plan, 1, init, "--temperature=1e-6", count=80), greedy)

    def test_every_pair_of_options(self):
        """Text and evaluation of one model in one precision: no other option changes them, and plans of --evaluate have both."""
        texts, losses = {}, {}
        for model in ("gpt2", "llama"):
            self.trained(self.compile(model, "no_shard"), 1, f"--save-weights={self.dir / model}", "--lr=0.005", steps=60)
        for number, row in enumerate(covering_rows(OPTIONS)):
            with self.subTest(**row):
                plan, mesh = self.dir / f"{number}.bin", ()
                if row["strategy"].startswith("hybrid"):
                    mesh = ("--mesh=replica:2,shard:2" if row["world"] == 4 else f"--mesh=replica:1,shard:{row['world']}",)
                flags = [f"--{name}={row[name]}" for name in ("strategy", "offload", "prefetch", "wrap", "remat")]
                flags += [f"--persistence-threshold={row['persistence']}", f"--gather-bucket-mb={row['buckets']}", "--min-num-params=60000",
                          f"--mixed-precision={row['precision'].removesuffix(' alone')}", f"--world-size={row['world']}", *mesh]
                if row["precision"] == "bf16 alone":
                    flags += ["--master-weights=off"]
                self.check("ftc", "compile", self.shared / f"{row['model']}.mlir", *flags, "--sample", *([row["kind"]] if row["kind"] else []),
                           "-o", plan)
                self.check("ftc", "verify", plan)
                options = (f"--init={self.dir / row['model']}", "--threads=1", *mesh)
                key = (row["model"], row["precision"].removesuffix(" alone"))  # one rounding, wherever it is done
                made = self.generate(plan, row["world"], *options, count=12)
                self.assertEqual(texts.setdefault(key, made), made)
                out = self.dir / "evaluation.jsonl"
                done = self.check("ftrun", f"--nproc-per-node={row['world']}", "--standalone", BIN / "ftexec", plan, "--evaluate",
                                  f"--data={self.text}", f"--metrics={out}", *options)
                (line,) = metrics(out)
                self.assertEqual(losses.setdefault((*key, row["world"]), line["eval_loss"]), line["eval_loss"])
                explained = self.explain(plan, row["world"], *mesh)
                self.assertIn(f"arena {explained['arena_bytes']} bytes", done.stdout)

    def test_a_checkpoint_is_as_good_as_its_weights(self):
        weights, folder = self.dir / "weights.safetensors", self.dir / "checkpoints"
        plan = self.compile("gpt2", "full_shard")
        self.trained(plan, 2, f"--save-weights={weights}", f"--checkpoint-dir={folder}", steps=4)
        expected = self.generate(plan, 2, f"--init={weights}")
        for options in ((f"--resume={folder / 'step-00000004'}",), ("--resume=auto", f"--checkpoint-dir={folder}")):
            for other in (plan, self.compile("gpt2", "no_shard", "--optimizer=lion"), self.compile("gpt2", "full_shard", "--evaluate")):
                self.assertEqual(self.generate(other, 3, *options), expected)

    def test_plans_without_it_are_what_they_were_and_explain_is_exact(self):
        source = self.shared / "gpt2.mlir"
        sampling = self.compile("gpt2", "full_shard")
        plain = self.dir / "plain.bin"
        self.check("ftc", "compile", source, "--strategy=full_shard", "-o", plain)
        for plan, programs in ((plain, ["init", "train_step", "eval_step"]), (sampling, ["init", "train_step", "eval_step", "sample_step"])):
            explained = self.explain(plan, 2)
            self.assertEqual([program["name"] for program in explained["programs"]], programs)
            self.assertIn(f"arena {explained['arena_bytes']} bytes", self.trained(plan, 2, steps=1)[2])
        # The logits of a batch, and where they are taken: no more than that.
        grown = self.explain(sampling, 2)["arena_bytes"] - self.explain(plain, 2)["arena_bytes"]
        self.assertLess(0, grown)
        self.assertLess(grown, 4 * 256 * 4 + 1024)

    def test_bad_input(self):
        source, plan = self.shared / "gpt2.mlir", self.compile("gpt2", "full_shard")
        weights = self.dir / "weights.safetensors"
        self.trained(plan, 1, f"--save-weights={weights}", steps=1)
        plain, large = self.dir / "plain.bin", self.dir / "large.bin"
        self.check("ftc", "compile", source, "--strategy=full_shard", "-o", plain)
        self.check("ftc", "model", "gpt2", "--vocab=300", "-o", self.dir / "large.mlir")
        self.check("ftc", "compile", self.dir / "large.mlir", "--strategy=full_shard", "--sample", "-o", large)
        data, init = f"--data={self.text}", f"--init={weights}"
        (self.dir / "broken.ftd").write_bytes(b"\x08\0\0\0\0\0\0\0{}      ")
        cases = [
            (65, (plain, data, "--sample-every=1", "--prompt=a"), "compile it with --sample"),
            (65, (plain, init, "--generate=1", "--prompt=a"), "compile it with --sample"),
            (2, (plan, data, "--sample-every=1"), "--sample-every needs --prompt"),
            (2, (plan, init, "--generate=3"), "--generate needs --prompt"),
            (2, (plan, "--generate=3", "--prompt=a"), "--generate needs trained weights"),
            (2, (plan, data, "--prompt=a"), "--prompt needs --sample-every or --generate"),
            (2, (plan, data, init, "--generate=3", "--prompt=a"), "--data makes no sense with --generate"),
            (2, (plan, init, "--generate=3", "--evaluate", "--prompt=a"), "give one of them"),
            (2, (plan, init, "--generate=3", "--prompt="), "--prompt is given no value"),
            (65, (plan, init, "--generate=3", "--prompt", ""), "--prompt is empty"),
            (74, (plan, init, "--generate=3", f"--prompt={self.dir / 'absent.ftd'}"), "absent.ftd"),
            (65, (plan, init, "--generate=3", f"--prompt={self.dir / 'broken.ftd'}"), "broken.ftd"),
            (65, (large, init, "--generate=3", "--prompt=text"), "its tokens are no bytes"),
        ]
        for status, command, words in cases:
            with self.subTest(words=words, command=command[1:]):
                done = run("ftexec", *command)
                self.assertEqual((done.returncode, len(done.stderr.splitlines())), (status, 1), done.stderr)
                self.assertIn(words, done.stderr)
        for model, words in (("bert", "not the token behind each token"), ("vit", "no input 'tokens' or 'input_ids'"), ("free_transformer", "sees what comes after")):
            with self.subTest(model=model):
                self.check("ftc", "model", model, "-o", self.dir / "m.mlir")
                done = run("ftc", "compile", self.dir / "m.mlir", "--strategy=full_shard", "--sample", "-o", self.dir / "m.bin")
                self.assertEqual(done.returncode, 65, done.stderr)
                self.assertIn(words, done.stderr)


if __name__ == "__main__":
    unittest.main()
