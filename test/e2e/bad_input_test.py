"""Bad input: one clear line, exit status 65 or 2, no process left behind, no file half written."""

import json
import os
import random
import struct
import unittest

from harness import BIN, EndToEnd, command_lines, environment, left_in_shared_memory, run
from plan_bytes import plan_hash


def safetensors(tensors, tail=0):
    """Bytes of a file; tensors: name -> (shape, begin, end). `tail` more bytes of data are allowed to be missing."""
    header = {n: {"dtype": "F32", "shape": s, "data_offsets": [b, e]} for n, (s, b, e) in tensors.items()}
    text = json.dumps(header).encode()
    end = max(e for _, _, e in tensors.values())
    return struct.pack("<Q", len(text)) + text + bytes(end - tail)


class BadInput(EndToEnd):
    def refused(self, done, *words, status=(2, 65)):
        """One line on stderr that has all the words."""
        lines = [line for line in done.stderr.splitlines() if line.strip()]
        said = f"status {done.returncode}\n{done.stdout}\n{done.stderr}"
        self.assertIn(done.returncode, status, said)
        self.assertEqual(len(lines), 1, said)
        for word in words:
            self.assertIn(str(word).lower(), lines[0].lower())
        self.assertEqual([line for line in command_lines() if line.startswith(f"{BIN}/") and str(self.dir) in line], [])

    def ftexec(self, *options, env=None, plan=None, data=None):
        return run("ftexec", plan or self.plan("gpt2", "full_shard"), f"--data={data or self.text}", "--steps=2", *options,
                   env=env)

    # --- the compiler ---

    def test_malformed_model(self):
        source = self.dir / "model.mlir"
        for text, place in (("module {\n  ft.parameter @w : tensor<4xf32\n}\n", "model.mlir:"),
                            ("func.func @forward() {\n  %0 = ft.nonsense\n}\n", "model.mlir:2:"), ("", "model.mlir"),
                            ("\x7fELF\x00\x01", "model.mlir:1:")):
            with self.subTest(text=text):
                source.write_text(text)
                self.refused(run("ftc", "compile", source, "--strategy=full_shard", "-o", self.dir / "plan.bin"), place,
                             status=(65,))
                self.assertFalse((self.dir / "plan.bin").exists())

    def test_wrong_shapes_in_a_model(self):
        source = self.dir / "model.mlir"
        self.check("ftc", "model", "gpt2", "-o", source)
        text = source.read_text()
        self.assertIn("tensor<64x192xf32>", text)
        source.write_text(text.replace("tensor<64x192xf32>", "tensor<65x192xf32>"))
        self.refused(run("ftc", "compile", source, "--strategy=full_shard", "-o", self.dir / "plan.bin"), "model.mlir:",
                     status=(65,))
        self.assertEqual(sorted(p.name for p in self.dir.iterdir()), ["model.mlir"])

    def test_edited_models(self):
        """Each edit of a good model is refused at its place, and with a word that says why."""
        source = self.dir / "model.mlir"
        good = self.check("ftc", "model", "gpt2", "--layers=1", "--hidden=8", "--heads=1", "--vocab=16", "--seq=4").stdout
        wpe = "@transformer.wpe.weight"
        for old, new, word in (
                ('aliases = ["lm_head.weight"]', 'aliases = ["transformer.wpe.weight"]', "given twice"),
                ('aliases = ["lm_head.weight"]', 'aliases = [""]', "cannot be called"),
                (wpe, "@__metadata__", "cannot be called"), (wpe, '@"\\FF\\FE"', "not UTF-8"),
                ('layer = "transformer.h.0"', 'layer = "\\FF"', "not UTF-8"),
                ('= ft.get @transformer.wte.weight {', '= ft.get @transformer.wte.weight {frozen, ', "unknown attribute 'frozen'"),
                ('layer = "transformer.', 'layr = "transformer.', "did you mean 'layer'"), ('{layer = "transformer.head"}', "{layer = 3 : i32}", "expected a text"),
                ("ft.vocab_size = 16", "ft.vocab_size = 17", "chooses among 16"),
                ("ft.vocab_size = 16 : i64", 'ft.vocab_size = "many"', "expected a positive i64"),
                ("tensor<64x8xf32>", "tensor<3x8xf32>", "chooses among 3"),
                ("tensor<64x8xf32>", "tensor<4611686018427387904x8xf32>", "larger than any memory"),
                ("<normal, 0.02>", "<normal, 0x7FF8000000000000>", "finite"), ("@forward", "@backward", "@forward"),
                ("module attributes {", "module attributes {deep = " + "[" * 9999 + "]" * 9999 + ", ", "nested deeper"),
                ("module", "ML\xefRmodule", "bytecode")):
            with self.subTest(new=new[:40]):
                self.assertIn(old, good)
                source.write_bytes(good.replace(old, new).encode("latin-1"))
                self.refused(run("ftc", "compile", source, "--strategy=full_shard", "-o", self.dir / "plan.bin"),
                             "model.mlir:", word, status=(65,))
                self.assertEqual([p.name for p in self.dir.iterdir()], ["model.mlir"])

    def test_a_loss_that_nothing_is_trained_by(self):
        source = self.dir / "model.mlir"
        text = """module {{
  ft.parameter @w : tensor<8x8xf32> = #ft.init<normal, 1.0> {{{}}}
  func.func @forward(%x: tensor<4x8xf32> {{ft.input = "x"}}) -> tensor<f32> {{
    %w = ft.get @w : tensor<8x8xf32>
    %s = ft.{} %w : tensor<8x8xf32>
    %y = ft.matmul %x, %{} : (tensor<4x8xf32>, tensor<8x8xf32>) -> tensor<4x8xf32>
    %loss = ft.reduce "sum" %{} over [0, 1] : tensor<4x8xf32> -> tensor<f32>
    return %loss : tensor<f32>
  }}
}}
"""
        for kind, op, summed, place in (("", "stop_gradient", "y", "model.mlir:8"), ("", "neg", "x", "model.mlir:8"), ("frozen", "neg", "y", "model.mlir:1")):
            source.write_text(text.format(kind, op, "s", summed))
            self.refused(run("ftc", "compile", source, "--strategy=full_shard", "-o", self.dir / "plan.bin"), place, "nothing to train", status=(65,))
            self.check("ftc", "compile", source, "--strategy=full_shard", "--evaluate", "-o", self.dir / "plan.bin")
        source.write_text(text.format("", "neg", "s", "y"))
        self.check("ftc", "compile", source, "--strategy=full_shard", "-o", self.dir / "plan.bin")

    def test_composites_within_composites(self):
        """Calls that double, or that go too deep, in either order of the functions: refused at once."""
        source = self.dir / "model.mlir"
        good = self.check("ftc", "model", "gpt2", "--layers=1", "--hidden=8", "--heads=1", "--vocab=16", "--seq=4").stdout
        vector = "tensor<8xf32>"
        for calls, count in ((2, 40), (1, 5000)):
            functions = [f"func.func private @f0(%x: {vector}) -> {vector} attributes {{ft.composite}} {{ return %x : {vector} }}"]
            for i in range(1, count):
                lines = [f"%v{k + 1} = ft.call @f{i - 1}({f'%v{k}' if k else '%x'}) : ({vector}) -> {vector}" for k in range(calls)]
                functions.append(f"func.func private @f{i}(%x: {vector}) -> {vector} attributes {{ft.composite}} "
                                 f"{{ {' '.join(lines)} return %v{calls} : {vector} }}")
            for order in (functions, functions[::-1]):
                with self.subTest(calls=calls):
                    source.write_text(good.replace("  func.func @forward", "\n".join(order) + "\n  func.func @forward"))
                    self.refused(run("ftc", "compile", source, "--strategy=full_shard", "-o", self.dir / "plan.bin"), "within each other",
                                 status=(65,))

    def test_numbers_that_are_none(self):
        for option, word in (("--lr=nan", "nan"), ("--lr=-1", "-1"), ("--lr=1e400", "1e400"), ("--steps=-1", "-1"),
                             ("--steps=99999999999999999999", "99999"), ("--seed=18446744073709551616", "18446"),
                             ("--timeout=nan", "nan"), ("--metrics=", "no value")):
            with self.subTest(option=option):
                self.refused(run("ftexec", self.plan("gpt2", "full_shard"), f"--data={self.text}", option), word, status=(2,))

    def test_unknown_names_come_with_a_suggestion(self):
        source = self.dir / "model.mlir"
        self.check("ftc", "model", "gpt2", "-o", source)
        self.refused(run("ftc", "compile", source, "--strategy=fullshard"), "did you mean", "full_shard")
        self.refused(run("ftc", "model", "gpt2", "--preset=debgu", "-o", self.dir / "x.mlir"), "did you mean", "debug")
        self.refused(run("ftc", "model", "lama", "-o", self.dir / "x.mlir"), "did you mean", "llama")
        self.refused(run("ftc", "compile", source, "--strategy=full_shard", "--dump=schedul"), "did you mean", "schedule")
        self.refused(self.ftexec("--device=cpuu"), "did you mean", "cpu")
        self.assertFalse((self.dir / "x.mlir").exists())

    def test_impossible_models(self):
        for options, word in ((["--heads=5"], "heads"), (["--seq=100000"], "context"), (["--layers=0"], "layers"),
                              (["--batch=-1"], "batch")):
            with self.subTest(options=options):
                self.refused(run("ftc", "model", "gpt2", *options, "-o", self.dir / "x.mlir"), word)
        self.refused(run("ftc", "model", "llama", "--kv-heads=3", "-o", self.dir / "x.mlir"), "kv")
        self.assertFalse((self.dir / "x.mlir").exists())

    # --- the plan ---

    def test_damaged_plans(self):
        good = self.plan("gpt2", "full_shard").read_bytes()
        plan = self.dir / "plan.bin"
        flipped = bytearray(good)
        flipped[len(good) // 2] ^= 0x40
        for damage, data in (("empty", b""), ("one byte", good[:1]), ("header alone", good[:32]), ("cut", good[:-1]),
                             ("half", good[:len(good) // 2]), ("flipped", bytes(flipped)), ("longer", good + b"x"),
                             ("text", b"To be or not to be, that is the question. " * 100), ("zeros", bytes(5000))):
            with self.subTest(damage=damage):
                plan.write_bytes(data)
                self.refused(self.ftexec(plan=plan), plan, status=(65,))
                self.refused(run("ftc", "explain", plan), plan, status=(65,))
                self.refused(run("ftc", "verify", plan), plan, status=(65,))
        self.refused(self.ftexec(plan=self.dir / "absent.bin"), "absent.bin", status=(74,))
        plan.write_bytes(good)
        self.refused(run("ftc", "compile", plan, "--strategy=full_shard", "-o", self.dir / "p.bin"), "it is a plan, not a model", status=(65,))

    def test_forged_plans(self):
        """Damage under a hash that fits: refused or run, never a crash. Machine code in it is trusted, so none is run."""
        good = self.plan("gpt2", "full_shard", "--layers=1", "--hidden=8", "--heads=1", "--ffn=8", "--seq=4").read_bytes()
        plan, draw = self.dir / "plan.bin", random.Random(1)
        for trial in range(60):
            payload = bytearray(good[32:])
            for _ in range(draw.choice((1, 1, 2, 4))):
                payload[draw.randrange(len(payload))] = draw.choice((0, 1, 127, 128, 255, draw.randrange(256)))
            plan.write_bytes(good[:16] + struct.pack("<QQ", len(payload), plan_hash(payload)) + bytes(payload))
            for command in (("ftc", "dump", plan), ("ftc", "explain", plan, "--world-size=3"),
                            ("ftexec", plan, f"--data={self.text}", "--steps=1", "--threads=1", "--progress=off",
                             "--kernels=reference")):
                done = run(*command, timeout=60)
                with self.subTest(trial=trial, command=command[:2]):
                    self.assertIn(done.returncode, (0, 65), done.stderr)
                    self.assertEqual(len(done.stderr.splitlines()), 1 if done.returncode else 0, done.stderr)

    # --- the launcher's environment ---

    def test_environment(self):
        where = dict(MASTER_ADDR="127.0.0.1", MASTER_PORT="29999")
        for env, word in ((dict(WORLD_SIZE=2, **where), "RANK"), (dict(RANK=2, WORLD_SIZE=2, **where), "WORLD_SIZE"),
                          (dict(RANK=-1, WORLD_SIZE=2, **where), "RANK"), (dict(RANK="zero", WORLD_SIZE=2, **where), "RANK"),
                          (dict(RANK=0, **where), "WORLD_SIZE"), (dict(RANK=0, WORLD_SIZE=2, MASTER_ADDR="127.0.0.1"), "MASTER_PORT"),
                          (dict(RANK=0, WORLD_SIZE=2, MASTER_ADDR="127.0.0.1", MASTER_PORT="99999999"), "MASTER_PORT")):
            with self.subTest(env=env):
                self.refused(self.ftexec(env=environment(**env)), word)

    # --- data ---

    def test_data_files(self):
        data = self.dir / "data"
        u16 = lambda *tokens: b"".join(struct.pack("<H", t) for t in tokens)
        header = lambda count: struct.pack("<3i", 20240520, 1, count) + bytes(253 * 4)
        for name, content, options, word in (("empty", b"", (), "empty"), ("short", b"abc", (), "65"),
                                             ("outside", u16(*[1] * 300, 999, *[1] * 300), ("--data-format=u16",), "999"),
                                             ("odd", b"\1\0" * 300 + b"\1", ("--data-format=u16",), "odd"),
                                             ("cut", header(1000) + u16(*[1] * 500), (), "1000"),
                                             ("llmc-outside", header(300) + u16(*[5] * 299, 256), (), "256")):
            with self.subTest(name=name):
                data.write_bytes(content)
                self.refused(self.ftexec(*options, data=data), data, word, status=(65,))
        self.refused(self.ftexec(data=self.dir / "absent.txt"), "absent.txt", status=(74,))

    def test_files_that_hold_something_else(self):
        """What auto cannot read is refused, as data and as data to evaluate on; what is said explicitly is obeyed, aloud."""
        text = self.text.read_bytes()
        wide = b"".join(struct.pack("<I", t) for t in text)
        record = json.dumps({"text": text[:500].decode()}).encode() + b"\n"
        for name, content, word in (("a.npy", b"\x93NUMPY\x01\0" + wide, "numpy"), ("a.jsonl", record * 9, "json"),
                                    ("a.txt", record * 9, "json"), ("a.parquet", b"PAR1" + wide + b"PAR1", "parquet"),
                                    ("a.txt", text[:400] + b"\0" + text[400:], "byte 400 is 0"), ("a.bin", wide, "u32"),
                                    ("a.txt", b"\xff\xfe" + text.decode().encode("utf-16-le"), "utf-16"),
                                    ("a.bin", text, "but is text"), ("plan.bin", self.plan("gpt2", "full_shard").read_bytes(), "plan"),
                                    ("a.bin", wide[:-2], "u32"), ("a.u32", text[:1000].replace(b" ", b"\0"), "outside")):
            data = self.dir / name
            data.write_bytes(content)
            with self.subTest(name=name, word=word):
                self.refused(self.ftexec(data=data), data, word, status=(65,))
                self.refused(self.ftexec(f"--eval-data={data}"), data, word, status=(65,))
        data = self.dir / "a.bin"
        data.write_bytes(wide)
        done = self.check("ftexec", self.plan("gpt2", "full_shard"), f"--data={data}", "--data-format=u16", "--steps=1")
        self.assertRegex(done.stderr, r"^ftexec: note: .*a\.bin' .* looks like uint32\n$")
        done = self.check("ftexec", self.plan("gpt2", "full_shard"), f"--data={data}", "--data-format=u32", "--steps=1")
        self.assertEqual(done.stderr, "")

    def test_text_for_another_vocabulary(self):
        plan = self.plan("gpt2", "no_shard", "--vocab=300")
        self.refused(self.ftexec(plan=plan), self.text, "300", "--data-format=text", status=(65,))
        self.assertEqual(self.ftexec("--data-format=text", plan=plan).returncode, 0)

    def test_data_that_is_no_file(self):
        fifo = self.dir / "fifo"
        os.mkfifo(fifo)
        for path in (fifo, self.dir, "/dev/zero"):
            self.refused(self.ftexec(data=path), path, "not a regular file", status=(65,))

    # --- weights ---

    def test_weights(self):
        good = self.dir / "good.safetensors"
        self.check("ftexec", self.plan("gpt2", "no_shard"), f"--data={self.text}", "--steps=1", f"--save-weights={good}",
                   "--progress=off")
        raw = good.read_bytes()
        (length,) = struct.unpack("<Q", raw[:8])
        header, body = json.loads(raw[8:8 + length]), raw[8 + length:]
        victim = "transformer.h.1.mlp.c_fc.weight"

        def write(edit, body=body):
            changed = json.loads(json.dumps(header))
            edit(changed)
            text = json.dumps(changed).encode()
            bad = self.dir / "bad.safetensors"
            bad.write_bytes(struct.pack("<Q", len(text)) + text + body)
            return bad

        def wrong_shape(h):
            h[victim]["shape"] = h[victim]["shape"][::-1]

        def missing(h):
            h["another.name"] = h.pop(victim)

        def overlapping(h):
            h[victim]["data_offsets"] = [h[victim]["data_offsets"][0] - 4, h[victim]["data_offsets"][1] - 4]

        for name, edit in (("wrong shape", wrong_shape), ("missing", missing), ("overlapping", overlapping)):
            with self.subTest(name=name):
                self.refused(self.ftexec(f"--init={write(edit)}"), "bad.safetensors", status=(65,))
        with self.subTest(name="cut"):
            self.refused(self.ftexec(f"--init={write(lambda h: None, body[:-10])}"), "bad.safetensors", status=(65,))
        with self.subTest(name="NUL after the header"):
            text = json.dumps(header).encode() + b"\0\0"
            (self.dir / "bad.safetensors").write_bytes(struct.pack("<Q", len(text)) + text + body)
            self.refused(self.ftexec(f"--init={self.dir}/bad.safetensors"), "JSON", status=(65,))
        with self.subTest(name="a name of two lines"):
            def two_lines(h):
                h["two\nlines"] = dict(h[victim], shape=[1])
            self.refused(self.ftexec(f"--init={write(two_lines)}"), "two\\nlines", status=(65,))
        with self.subTest(name="not safetensors"):
            self.refused(self.ftexec(f"--init={self.text}"), "text.txt", status=(65,))

    def test_a_save_that_fails_leaves_the_old_file(self):
        target = self.dir / "weights.safetensors"
        target.write_bytes(b"precious")
        done = self.ftexec(f"--save-weights={self.dir}/no/such/folder/w.safetensors")
        self.assertEqual(done.returncode, 74, done.stderr)
        self.refused(self.ftexec(f"--save-weights={target}", data=self.dir / "absent.txt"), "absent.txt", status=(74,))
        self.assertEqual(target.read_bytes(), b"precious")
        self.assertEqual([p.name for p in self.dir.iterdir()], ["weights.safetensors"])

    # --- ranks ---

    def test_ranks_with_different_plans(self):
        chooser = self.dir / "choose.sh"
        plans = [self.plan("gpt2", strategy) for strategy in ("full_shard", "no_shard")]
        chooser.write_text(f"#!/bin/sh\nif [ $RANK = 0 ]; then p={plans[0]}; else p={plans[1]}; fi\n"
                           f"exec {BIN}/ftexec $p --data={self.text} --steps=2\n")
        chooser.chmod(0o755)
        done = run("ftrun", "--nproc-per-node=2", "--standalone", chooser, timeout=60)
        self.assertEqual(done.returncode, 65, done.stderr)
        self.assertIn("different plans", done.stdout + done.stderr)
        self.assertEqual(left_in_shared_memory(), [])


if __name__ == "__main__":
    unittest.main()
