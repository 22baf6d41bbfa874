"""Input by somebody who means harm: refused in one line that a terminal can show, without hanging, crashing or taking the
machine's memory."""

import os
import resource
import struct
import subprocess
import unittest

from harness import BIN, EndToEnd, environment, run
from plan_bytes import HEADER_BYTES, edit_attributes, integer_attributes, with_payload

# heads + 2 * kv_heads of this is 2 where it wraps round, and 2 * LARGEST is -2.
THIRD, LARGEST = (2**64 + 2) // 3, 2**63 - 1


def limited(*command, megabytes=2000, timeout=60):
    """As `run`, with so much address space; output as bytes."""
    limit = lambda: resource.setrlimit(resource.RLIMIT_AS, (megabytes << 20, megabytes << 20))
    return subprocess.run([str(BIN / command[0]), *map(str, command[1:])], capture_output=True, timeout=timeout,
                          env=environment(), stdin=subprocess.DEVNULL, preexec_fn=limit)


class HostileInput(EndToEnd):
    def refused(self, done, *words, status=(2, 65)):
        """One line of at most 4 KiB of text without control characters, that has all the words."""
        said = f"status {done.returncode}\n{done.stdout[:2000]}\n{done.stderr[:2000]}"
        self.assertIn(done.returncode, status, said)
        raw = done.stderr if isinstance(done.stderr, bytes) else done.stderr.encode()
        self.assertTrue(raw.endswith(b"\n") and raw.count(b"\n") == 1, said)
        self.assertLessEqual(len(raw), 4097)
        line = raw[:-1].decode()  # UTF-8, or this raises
        self.assertFalse([c for c in line if ord(c) < 32 or 127 <= ord(c) < 160], said)
        for word in words:
            self.assertIn(str(word).lower(), line.lower())

    def small_plan(self, model="gpt2"):
        layers = 2 if model == "free_transformer" else 1
        return self.plan(model, "full_shard", f"--layers={layers}", "--hidden=16", "--heads=2", "--ffn=16", "--seq=4", "--vocab=256")

    # --- what is opened ---

    def test_devices_and_pipes_are_not_read(self):
        pipe, good = self.dir / "pipe", self.small_plan()
        os.mkfifo(pipe)
        model = self.dir / "model.mlir"
        self.check("ftc", "model", "gpt2", "-o", model)
        for path in ("/dev/zero", pipe, self.dir):
            for command in (("ftc", "compile", path, "--strategy=full_shard"),
                            ("ftc", "compile", model, "--strategy=full_shard", f"--config={path}"),
                            ("ftc", "explain", path), ("ftc", "verify", path), ("ftc", "dump", path),
                            ("ftexec", path, f"--data={self.text}"), ("ftexec", good, f"--data={path}"),
                            ("ftexec", good, f"--data={self.text}", f"--init={pipe if path == self.dir else path}"),
                            ("ft-opt", path)):
                with self.subTest(command=command[:2], path=path):
                    self.refused(limited(*command, timeout=20), "regular", status=(65,))

    def test_a_text_that_never_ends(self):
        """What comes through a pipe that we are given is read up to a bound."""
        for command, bound in ((f"{BIN}/ftc compile /dev/stdin --strategy=full_shard", "256 MiB"),
                               (f"{BIN}/ftc compile --print-config --config=/dev/stdin", "1 MiB")):
            with self.subTest(bound=bound):
                self.refused(run("bash", "-c", f"cat /dev/zero | {command}", timeout=60), bound, status=(65,))
        made = self.check("bash", "-c", f"{BIN}/ftc model gpt2 | {BIN}/ftc compile /dev/stdin --strategy=full_shard "
                                        f"-o {self.dir}/plan.bin")
        self.assertEqual(made.stderr, "")
        self.check("ftc", "verify", self.dir / "plan.bin")

    # --- what is said ---

    def test_messages_are_bounded_text(self):
        escape, huge = "\x1b[2J\x1b]0;owned\x07", "A" * (40 << 20)
        weights = self.dir / "bad.safetensors"
        for name in (huge, escape, "\u009b31m", "\u202eback", "two\nlines"):
            for header in ('{"%s": {"dtype": "F32", "shape": [1], "data_offsets": [0, 8]}}' % json_text(name),
                           '{"x": {"dtype": "%s"}}' % json_text(name), '{"x": "%s"}' % json_text(name), name):
                with self.subTest(name=name[:10], header=header[:20]):
                    text = header.encode()
                    weights.write_bytes(struct.pack("<Q", len(text)) + text + bytes(8))
                    self.refused(run("ftexec", self.small_plan(), f"--data={self.text}", f"--init={weights}"), "safetensors",
                                 status=(65,))

    def test_messages_of_the_compiler(self):
        model, config = self.dir / "model.mlir", self.dir / "train.yaml"
        good = self.check("ftc", "model", "gpt2", "--layers=1").stdout
        escape = "\\1B[2J\\9B"
        for old, new in (('ft.model = "gpt2"', f'ft.vocab_siz = "{escape}"'),
                         ("ft.vocab_size = 256 : i64", f'ft.vocab_size = "{escape}{"A" * 100000}"'),
                         ("module", "module \x1b[31m\xff"), ("@transformer.wte.weight", f'@"{escape}"')):
            with self.subTest(new=new[:30]):
                self.assertIn(old, good)
                model.write_bytes(good.replace(old, new).encode("latin-1"))
                self.refused(run("ftc", "compile", model, "--strategy=full_shard"), "model.mlir", status=(65,))
        model.write_text(good)
        for text in (f"strategy: \u009b31m{'B' * 100000}", f"{'k' * 100000}: 1", "strategy: \u202efull_shard"):
            with self.subTest(text=text[:20]):
                config.write_text(text)
                self.refused(run("ftc", "compile", model, f"--config={config}"), "train.yaml", status=(2, 65))
        for option in (f"--strategy=\x1b[31m{'C' * 100000}", "--\x1b[31m=1", f"--dump={'D' * 100000}"):
            with self.subTest(option=option[:20]):
                self.refused(run("ftc", "compile", model, option), status=(2,))
        self.refused(run("ftexec", f"--{'x' * 10000}\x1b=1"), status=(2,))
        self.refused(run("ftrun", f"--nproc-per-node=\x1b[31m{'x' * 10000}", "true"), status=(2,))

    def test_a_plan_cannot_write_to_the_terminal(self):
        """Names in a plan are shown escaped."""
        plan, good = self.dir / "plan.bin", self.small_plan().read_bytes()
        payload = good[HEADER_BYTES:].replace(b"transformer.h.0", b"\x1b[31mformer.h.0")
        self.assertNotEqual(payload, good[HEADER_BYTES:])
        plan.write_bytes(with_payload(good, payload))
        for command in (("ftc", "dump", plan), ("ftc", "explain", plan, "--peak"), ("ftc", "explain", plan, "--json"),
                        ("ftc", "explain", plan, "--schedule")):
            with self.subTest(command=command):
                self.assertNotIn("\x1b", self.check(*command).stdout)

    def test_the_error_file_of_torchelastic(self):
        weights, errors = self.dir / "bad.safetensors", self.dir / "error.json"
        weights.write_bytes(struct.pack("<Q", 1 << 20) + b'{"' + b"\x1b[31m" * 200000 + bytes(1 << 20))
        env = environment(RANK=0, WORLD_SIZE=1, LOCAL_RANK=0, LOCAL_WORLD_SIZE=1, MASTER_ADDR="127.0.0.1", MASTER_PORT=29517,
                          TORCHELASTIC_ERROR_FILE=errors)
        self.refused(run("ftexec", self.small_plan(), f"--data={self.text}", f"--init={weights}", env=env), "safetensors",
                     status=(65,))
        self.assertLess(errors.stat().st_size, 20000)
        self.assertNotIn(b"\\u001b", errors.read_bytes())

    # --- what recurses ---

    def test_deep_nesting(self):
        source = self.dir / "model.mlir"
        good = self.check("ftc", "model", "gpt2", "--layers=1").stdout
        brackets = "module attributes {deep = " + "[" * 100000 + "]" * 100000 + "} {}\n"
        chain = "#a0 = [1]\n" + "".join(f"#a{i} = [#a{i - 1}]\n" for i in range(1, 5000)) + "module attributes {x = #a4999} {}\n"
        doubling = "#a0 = [1]\n" + "".join(f"#a{i} = [#a{i - 1}, #a{i - 1}]\n" for i in range(1, 60)) + \
            "module attributes {ft.vocab_size = #a59} {}\n"
        for text, word in ((brackets, "nested deeper"), (chain, "nested deeper"), (doubling, "stands for more than"),
                           ("!t0 = tuple<i1>\n" + "".join(f"!t{i} = tuple<!t{i - 1}, !t{i - 1}>\n" for i in range(1, 60)) +
                            "func.func private @f(!t59)\n", "stands for more than")):
            source.write_text(text)
            for command in (("ft-opt", source), ("ftc", "compile", source, "--strategy=full_shard")):
                with self.subTest(word=word, command=command[0]):
                    self.refused(limited(*command), "model.mlir", word, status=(65,))
        # Names are fine otherwise.
        source.write_text("!ids = tensor<4x64xi32>\n" + good.replace("tensor<4x64xi32>", "!ids"))
        self.check("ftc", "compile", source, "--strategy=full_shard", "-o", self.dir / "plan.bin")

    # --- what a plan says ---

    def test_attributes_that_wrap_round(self):
        """The plan of issue 11: the proof knows no kernel, so the kernels refuse it."""
        plan = self.dir / "plan.bin"
        for model, attributes, value in (("gpt2", ("heads", "kv_heads"), THIRD), ("gpt2", ("heads", "kv_heads"), LARGEST),
                                         ("llama", ("heads",), LARGEST), ("llama", ("heads",), 2**62)):
            good = self.small_plan(model).read_bytes()
            signed = value - 2**64 if value >= 2**63 else value
            edited = edit_attributes(good[HEADER_BYTES:], lambda k, a, v: signed if a in attributes else v)
            plan.write_bytes(with_payload(good, edited))
            with self.subTest(model=model, value=value):
                self.refused(run("ftexec", plan, f"--data={self.text}", "--steps=1", "--progress=off"), "heads", status=(65,))

    def test_every_integer_of_a_plan(self):
        plan = self.dir / "plan.bin"
        for model in ("llama", "free_transformer"):
            good = self.small_plan(model).read_bytes()
            payload = good[HEADER_BYTES:]
            for kernel, attribute in integer_attributes(payload):
                for value in (-1, LARGEST, THIRD - 2**63, 2**31):
                    edited = edit_attributes(payload, lambda k, a, v: value if (k, a) == (kernel, attribute) else v)
                    plan.write_bytes(with_payload(good, edited))
                    done = run("ftexec", plan, f"--data={self.text}", "--steps=1", "--threads=1", "--progress=off", timeout=60)
                    with self.subTest(model=model, kernel=kernel, attribute=attribute, value=value):
                        if done.returncode != 0:  # a stream of random numbers may be another
                            self.refused(done, kernel, status=(65,))


def json_text(name):
    return "".join(c if ord(c) > 127 or 32 <= ord(c) != 34 else f"\\u{ord(c):04x}" for c in name)


if __name__ == "__main__":
    unittest.main()
