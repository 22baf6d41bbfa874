"""Files of documents (.ftd) through whole runs: the batches are those of a plain loop, damage and lies are refused, runs go on where they were."""

import os
import random
import struct
import unittest

import ftd_files
from checkpoint_runs import tensors
from harness import BIN, EndToEnd, environment, metrics, run

SEQ = 16
SMALL = {"llama": ("--layers=1", "--hidden=16", "--heads=2", "--kv-heads=2", "--ffn=32"), "gpt2": ("--layers=1", "--hidden=16", "--heads=2", "--ffn=32"),
         "gemma2": ("--layers=2", "--hidden=16", "--heads=2", "--kv-heads=1", "--ffn=32", "--head-size=8", "--window=4"),
         "qwen3": ("--layers=1", "--hidden=16", "--heads=2", "--kv-heads=1", "--ffn=32", "--head-size=8")}
NAMES = {"llama": ("tokens", "segments", "targets"), "gpt2": ("tokens", "positions", "segments", "targets")}


def written(seed=1, count=60, most=50):
    """Documents as people have them: many short ones, some longer than a sequence, some of one token."""
    draw = random.Random(seed)
    return [[draw.randrange(256) for _ in range(min(most, 1 + int(draw.expovariate(1 / 8))))] for _ in range(count)]


def masked(documents, seed=2):
    draw = random.Random(seed)
    return [int(draw.random() < 0.7) for document in documents for _ in document]


class DataFtd(EndToEnd):
    def small(self, model, *options, batch=2, strategy="full_shard", seq=SEQ):
        return self.plan(model, strategy, *SMALL[model], f"--seq={seq}", f"--batch={batch}", *options)

    def losses(self, plan, data, world=1, steps=12, options=()):
        lr = () if any(option.startswith("--lr=") for option in options) else ("--lr=0.01",)
        rows = self.train(plan, world, *lr, *options, steps=steps, data=data)
        return [(row["loss"], row["grad_norm"]) for row in rows]

    def refused(self, plan, path, words, status=65):
        done = run("ftexec", plan, f"--data={path}", "--steps=1", "--progress=off")
        self.assertEqual((done.returncode, done.stderr.count("\n")), (status, 1), done.stderr)
        self.assertIn(words, done.stderr)

    def test_packed_batches_are_those_of_a_loop(self):
        documents = written()
        for model, names in NAMES.items():
            for mask in (None, masked(documents)):
                rows = ftd_files.packed(documents, mask, SEQ, pad=7)
                data = ftd_files.write(self.dir / "d.ftd", documents, mask, pad_token="7")
                plain = ftd_files.tensors(self.dir / "d.safetensors", rows, names)
                plan = self.small(model, "--packed")
                for world in (1, 2):
                    for shuffle in ("on", "off"):
                        found = [self.losses(plan, path, world, options=(f"--shuffle={shuffle}",)) for path in (data, plain)]
                        self.assertEqual(found[0], found[1])
                        self.assertEqual(len(set(found[0])), 12)
        out = self.check("ftexec", plan, f"--data={data}", "--steps=1", "--progress=off").stdout
        filled = 100 * sum(len(d) - 1 for d in documents) / (len(rows) * SEQ)
        self.assertIn(f"({'ftd'}, {sum(map(len, documents))} tokens, {len(rows)} sequences of 60 packed documents, {filled:.1f}% filled)", out)

    def test_a_stream_is_that_of_the_tokens(self):
        documents = written()
        tokens, mask = [t for d in documents for t in d], masked(documents)
        (self.dir / "d.u16").write_bytes(struct.pack(f"<{len(tokens)}H", *tokens))
        ftd_files.write(self.dir / "d.ftd", documents)
        (self.dir / "unnamed").write_bytes((self.dir / "d.ftd").read_bytes())
        plan = self.small("llama")
        for world in (1, 2):
            found = [self.losses(plan, self.dir / name, world) for name in ("d.u16", "d.ftd", "unnamed")]
            self.assertEqual(found, found[:1] * 3)
        rows = [{"tokens": tokens[k:k + SEQ], "targets": [tokens[i] if mask[i] else -100 for i in range(k + 1, k + SEQ + 1)]}
                for k in range(0, len(tokens) - SEQ, SEQ)]
        found = [self.losses(plan, path) for path in (ftd_files.write(self.dir / "m.ftd", documents, mask),
                                                      ftd_files.tensors(self.dir / "m.safetensors", rows, ("tokens", "targets")))]
        self.assertEqual(found[0], found[1])

    def test_documents_are_examples_for_a_classifier(self):
        """Of a model that takes the length and the class of each."""
        model = self.dir / "model.mlir"
        options = ("--layers=1", "--hidden=16", "--heads=2", "--ffn=32", f"--seq={SEQ}", "--batch=2", "--labels=3")
        self.check("ftc", "model", "bert_classifier", *options, "-o", model)
        plan = self.dir / "plan.bin"
        self.check("ftc", "compile", model, "--strategy=full_shard", "-o", plan)
        documents = [d[:SEQ] for d in written(count=20)]
        classes = [k % 3 for k in range(20)]
        types = [[int(i > 3) for i in range(SEQ)] for _ in documents]
        inputs = [("labels", "I32", [20], struct.pack("<20i", *classes)),
                  ("token_types", "U8", [20, SEQ], bytes(t for row in types for t in row))]
        data = ftd_files.write(self.dir / "d.ftd", documents, inputs=inputs, kind="sequences", pad_token="9")
        padded = [d + [9] * (SEQ - len(d)) for d in documents]
        stored = [("labels", "I64", [20], struct.pack("<20q", *classes)), ("lengths", "I32", [20], struct.pack("<20i", *map(len, documents))),
                  ("tokens", "I32", [20, SEQ], struct.pack(f"<{20 * SEQ}i", *sum(padded, []))),
                  ("token_types", "I32", [20, SEQ], struct.pack(f"<{20 * SEQ}i", *sum(types, [])))]
        head, body = {}, b""
        for name, dtype, shape, raw in stored:
            head[name] = {"dtype": dtype, "shape": shape, "data_offsets": [len(body), len(body) + len(raw)]}
            body += raw
        text = ftd_files.json.dumps(head).encode()
        plain = self.dir / "d.safetensors"
        plain.write_bytes(struct.pack("<Q", len(text)) + text + body)
        for world in (1, 2):
            found = [self.losses(plan, path, world) for path in (data, plain)]
            self.assertEqual(found[0], found[1])
        long = ftd_files.write(self.dir / "l.ftd", [d * SEQ for d in documents], inputs=inputs, kind="sequences")
        self.refused(plan, long, f"ftc tokenize --max-length={SEQ}")

    def test_packed_documents_are_as_separate_ones(self):
        """A step on sequences of several documents is that on a row for each of them, but for the order of sums in float32."""
        documents = [d[:SEQ + 1] for d in written(count=40) if len(d) > 1]
        rows = ftd_files.packed(documents, None, SEQ)
        data = ftd_files.write(self.dir / "d.ftd", documents)
        alone = [ftd_files.row_of(documents, None, [(sum(map(len, documents[:k])), len(d) - 1)], SEQ, 0) for k, d in enumerate(documents)]
        plain = ftd_files.tensors(self.dir / "d.safetensors", alone, ("tokens", "targets"))
        self.assertLess(len(rows), len(alone) / 2)
        step = ("--lr=1", "--lr-schedule=constant", "--optimizer=sgd", "--clip=0", "--weight-decay=0")
        for model in SMALL:
            found = []
            for path, options, batch in ((data, ("--packed",), len(rows)), (plain, (), len(alone))):
                source, plan = self.dir / "m.mlir", self.dir / "m.bin"
                self.check("ftc", "model", model, *SMALL[model], f"--seq={SEQ}", f"--batch={batch}", *options, "-o", source)
                self.check("ftc", "compile", source, "--strategy=no_shard", *step, "-o", plan)
                out, weights = self.dir / "m.jsonl", self.dir / "w.safetensors"
                out.unlink(missing_ok=True)
                first = self.dir / "first.safetensors"
                if not found:
                    self.check("ftexec", plan, f"--data={path}", "--steps=1", "--lr=0", "--progress=off", f"--save-weights={first}")
                self.check("ftexec", plan, f"--data={path}", f"--init={first}", "--steps=1", "--progress=off", f"--metrics={out}", f"--save-weights={weights}")
                values = {name: struct.unpack(f"<{len(raw) // 4}f", raw) for name, (_, _, raw) in tensors(weights).items()}
                found.append((metrics(out)[0], values))
            (packed, weights), (separate, others) = found
            self.assertLess(abs(packed["loss"] - separate["loss"]), 1e-6 * separate["loss"], model)
            self.assertLess(abs(packed["grad_norm"] - separate["grad_norm"]), 1e-5 * separate["grad_norm"], model)
            self.assertEqual(weights.keys(), others.keys())
            apart = sum((a - b) ** 2 for name in weights for a, b in zip(weights[name], others[name])) ** 0.5
            self.assertLess(apart, 1e-5 * separate["grad_norm"], model)

    def test_goes_on_in_the_middle(self):
        documents = written(count=200)
        data = ftd_files.write(self.dir / "d.ftd", documents, masked(documents))
        other = ftd_files.write(self.dir / "e.ftd", written(seed=5))
        plan = self.small("gpt2", "--packed")
        for name, spelled in (("one", data), ("two", f"{data}:3,{other}:1")):
            whole = self.losses(plan, spelled, 2, steps=16)
            folder = self.dir / name
            self.losses(plan, spelled, 2, steps=16, options=(f"--checkpoint-dir={folder}", "--save-every=7", "--keep=9"))
            again = self.dir / f"{name}.jsonl"
            self.check("ftrun", "--nproc-per-node=2", "--standalone", BIN / "ftexec", plan, f"--data={spelled}", f"--resume={folder}/step-00000007",
                       "--lr=0.01", "--steps=16", f"--metrics={again}", "--progress=off")
            self.assertEqual([(row["loss"], row["grad_norm"]) for row in metrics(again)], whole[7:])
        # The same files as a stream are other sequences.
        stream = self.small("gpt2")
        done = run("ftexec", stream, f"--data={data}", f"--resume={self.dir}/one/step-00000007", "--steps=16", "--progress=off")
        self.assertEqual(done.returncode, 65, done.stderr)

    def test_weights_deal_out_sources(self):
        """Losses of a model that does not learn tell which documents were seen."""
        plan, known = self.small("llama", "--packed", batch=1), {}
        for name, seed in (("a", 3), ("b", 4)):
            path = ftd_files.write(self.dir / f"{name}.ftd", [d[:SEQ] + [0] for d in written(seed, 30, SEQ) if len(d) > SEQ // 2])
            for loss, _ in self.losses(plan, path, steps=10, options=("--lr=0", "--shuffle=off")):
                known[loss] = name
        seen = [known.get(loss) for loss, _ in self.losses(plan, f"{self.dir}/a.ftd:3,{self.dir}/b.ftd:1", steps=256, options=("--lr=0", "--shuffle=off"))]
        told = [name for name in seen if name]
        self.assertGreater(len(told), 128)
        self.assertLess(abs(told.count("a") / len(told) - 0.75), 0.1)

    def test_damage_and_lies_are_refused(self):
        plan = self.small("llama", "--packed")
        documents = written(count=10)
        good = ftd_files.contents(documents, masked(documents))
        size = 8 + struct.unpack("<Q", good[:8])[0]
        bad = self.dir / "bad.ftd"
        draw = random.Random(7)
        for at in sorted({0, 7, 8, 100, size - 1, size, size + 8, size + 87, size + 88, len(good) - 1, *(draw.randrange(len(good)) for _ in range(30))}):
            bad.write_bytes(good[:at])
            self.refused(plan, bad, "bad.ftd")
            bad.write_bytes(good[:at] + bytes([good[at] ^ 1 << draw.randrange(8)]) + good[at + 1:])
            self.refused(plan, bad, "bad.ftd")
        for kwargs, words in (({"version": "2"}, "this program reads version 1"), ({"counted": 3}, "count as targets, but its header says 3"),
                              ({"kind": "verse"}, "'kind' of its header is 'verse'"), ({"vocabulary_size": 20}, "outside of its vocabulary of 20"),
                              ({"vocabulary_size": 257}, "has a vocabulary of 257, more than the model's 256"), ({"eos_token": "256"}, "'eos_token'")):
            self.refused(plan, ftd_files.write(bad, documents, masked(documents), **kwargs), words)
        self.refused(plan, ftd_files.write(bad, documents, inputs=[("labels", "I32", [10], bytes(40))]), "documents are packed")
        (self.dir / "plain.u16").write_bytes(bytes(200))
        self.refused(plan, self.dir / "plain.u16", "does not say where documents begin")

    def test_a_tokenizer_is_recognised(self):
        folder = self.dir / "hf"
        folder.mkdir()
        config = {"model_type": "gpt2", "architectures": ["GPT2LMHeadModel"], "n_embd": 16, "n_layer": 1, "n_head": 2, "n_positions": 32, "vocab_size": 256,
                  "activation_function": "gelu_new", "resid_pdrop": 0, "embd_pdrop": 0, "attn_pdrop": 0, "layer_norm_epsilon": 1e-5}
        (folder / "config.json").write_text(ftd_files.json.dumps(config))
        vocabulary = {f"t{k}é": k for k in range(255)}
        tokenizer = {"model": {"type": "BPE", "vocab": vocabulary, "merges": []}, "added_tokens": [{"id": 255, "content": "<end>", "special": True}]}
        (folder / "tokenizer.json").write_text(ftd_files.json.dumps(tokenizer))
        raw = b"".join(struct.pack("<2I", k, len(text.encode())) + text.encode() for text, k in [*vocabulary.items(), ("<end>", 255)])
        wanted = f"{ftd_files.xxh64(raw):016x}"
        model, plan = self.dir / "model.mlir", self.dir / "plan.bin"
        self.check("ftc", "import", folder, f"--seq={SEQ}", "--batch=2", "--packed", "-o", model)
        self.assertIn(f'ft.tokenizer = "{wanted}"', model.read_text())
        self.check("ftc", "compile", model, "--strategy=no_shard", "-o", plan)
        documents = written()
        for tokenizer_hash in ("", wanted):
            data = ftd_files.write(self.dir / "d.ftd", documents, tokenizer_hash=tokenizer_hash)
            self.check("ftexec", plan, f"--data={data}", "--steps=1", "--progress=off")
        other = ftd_files.write(self.dir / "o.ftd", documents, tokenizer_hash="0123456789abcdef")
        self.refused(plan, other, f"was made by another tokenizer (0123456789abcdef) than the one of the model ({wanted})")
        tokenizer["added_tokens"][0]["id"] = 256
        (folder / "tokenizer.json").write_text(ftd_files.json.dumps(tokenizer))
        done = self.check("ftc", "import", folder, "-o", model)
        self.assertIn("has ids up to 256, but the model has 256 rows", done.stderr)
        (folder / "tokenizer.json").write_text("{}")
        self.assertEqual(run("ftc", "import", folder, "-o", model).returncode, 65)
        done = run("ftc", "model", "bert", "--packed", "-o", model)
        self.assertEqual(done.returncode, 2)
        self.assertIn("--packed is an option of", done.stderr)

    def test_tokenize_is_another_program(self):
        done = run("ftc", "tokenize", "--help", env=environment(PATH=self.dir))
        self.assertEqual(done.returncode, 2)
        self.assertIn("pip install 'tools/python[tokenize]'", done.stderr)
        program = self.dir / "ft-tokenize"
        program.write_text('#!/bin/sh\nprintf "%s|" "$@"\nexit 74\n')
        program.chmod(0o755)
        done = run("ftc", "tokenize", "--tokenizer=a b", "--", "-x", "--help", env=environment(PATH=f"{self.dir}:{os.environ['PATH']}"))
        self.assertEqual((done.returncode, done.stdout), (74, "--tokenizer=a b|--|-x|--help|"))
        self.assertIn("tokenize", self.check("ftc", "--help").stdout)


if __name__ == "__main__":
    unittest.main()
