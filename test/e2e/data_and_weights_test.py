"""Data formats and safetensors, through whole runs."""

import json
import os
import struct
import subprocess
import unittest

from harness import BIN, STRATEGIES, EndToEnd, environment, metrics, run


class DataAndWeights(EndToEnd):
    def files_of_all_formats(self):
        """The text's bytes as tokens: format -> file."""
        tokens = self.text.read_bytes()
        words = {width: b"".join(t.to_bytes(width, "little") for t in tokens) for width in (2, 4)}
        header = lambda magic, version: struct.pack("<3i", magic, version, len(tokens)) + bytes(253 * 4)
        files = {"llmc16.bin": header(20240520, 1) + words[2], "llmc32.bin": header(20240801, 7) + words[4],
                 "plain.bin": words[2], "plain.u16": words[2], "plain.u32": words[4]}
        for name, content in files.items():
            (self.dir / name).write_bytes(content)
        return [self.text, *(self.dir / name for name in files)]

    def test_all_formats_hold_the_same_tokens(self):
        files = self.files_of_all_formats()
        for world, options in ((1, ("--shuffle=on",)), (2, ("--shuffle=off",)), (3, ("--shuffle=on",))):
            losses = [[row["loss"] for row in self.train(self.plan("gpt2", "full_shard"), world, *options, steps=3, data=data)]
                      for data in files]
            self.assertEqual(losses, losses[:1] * len(files))

    def test_evaluation_data_of_all_formats(self):
        found = []
        for data in self.files_of_all_formats():
            out = self.dir / "eval.jsonl"
            self.check("ftexec", self.plan("gpt2", "full_shard"), f"--data={self.text}", f"--eval-data={data}", "--steps=1",
                       "--eval-steps=3", f"--metrics={out}", "--progress=off")
            found.append([row["eval_loss"] for row in metrics(out) if "eval_loss" in row])
        self.assertEqual((found, len(found[0])), (found[:1] * len(found), 1))

    def test_uint32_tokens_above_65535(self):
        """A vocabulary as Llama 3 has: the bytes shifted up beyond what uint16 holds."""
        data = self.dir / "data.u32"
        plan = self.plan("llama", "full_shard", "--vocab=66000", "--layers=1", "--hidden=16", "--heads=2", "--kv-heads=1", "--ffn=32")
        data.write_bytes(b"".join(struct.pack("<I", 65700 + t) for t in self.text.read_bytes()))
        rows = self.train(plan, 2, "--lr=0.05", steps=8, data=data)
        self.assertLess(rows[-1]["loss"], rows[0]["loss"] - 0.5)
        data.write_bytes(data.read_bytes() + struct.pack("<I", 66000))
        done = run("ftexec", plan, f"--data={data}", "--steps=1")
        self.assertEqual((done.returncode, len(done.stderr.splitlines())), (65, 1), done.stderr)
        self.assertIn(f"token {self.text.stat().st_size} has the value 66000", done.stderr)

    def test_shuffling(self):
        plan = self.plan("gpt2", "full_shard")
        first = lambda *options: self.train(plan, 1, *options, steps=2)[1]["loss"]
        self.assertNotEqual(first("--shuffle=on"), first("--shuffle=off"))
        self.assertEqual(first("--shuffle=off"), first("--shuffle=off"))

    def test_weights_saved_by_one_strategy_start_another(self):
        """Saved at one world size and strategy, read at any other: the same file, the same first loss."""
        saved = {}
        for strategy in STRATEGIES:
            for world in (1, 3):
                path = self.dir / f"{strategy}{world}.safetensors"
                self.train(self.plan("llama", strategy), world, f"--save-weights={path}", "--shuffle=off", steps=2)
                saved[strategy, world] = path.read_bytes()
        for world in (1, 3):
            self.assertEqual(saved["full_shard", world], saved["no_shard", world])
            self.assertEqual(saved["shard_grad_op", world], saved["no_shard", world])
        start = self.dir / "full_shard3.safetensors"
        rows = [self.train(self.plan("llama", strategy), 2, f"--init={start}", steps=1)[0] for strategy in STRATEGIES]
        self.assertEqual(len({(row["loss"], row["grad_norm"]) for row in rows}), 1)

    def test_the_file_is_a_plain_safetensors_file(self):
        path = self.dir / "w.safetensors"
        self.train(self.plan("gpt2", "full_shard"), 2, f"--save-weights={path}", steps=1)
        raw = path.read_bytes()
        (length,) = struct.unpack("<Q", raw[:8])
        header = json.loads(raw[8:8 + length])
        header.pop("__metadata__", None)
        self.assertEqual(header["transformer.h.0.attn.c_attn.weight"]["shape"], [64, 192])
        self.assertNotIn("lm_head.weight", header)
        spans = sorted(entry["data_offsets"] for entry in header.values())
        self.assertEqual(spans[0][0], 0)
        self.assertTrue(all(a[1] == b[0] for a, b in zip(spans, spans[1:])))
        self.assertEqual(spans[-1][1], len(raw) - 8 - length)

    def test_a_data_file_that_is_cut_while_it_is_read(self):
        data = self.dir / "data.txt"
        data.write_bytes(b" " * (1 << 22))
        process = subprocess.Popen([BIN / "ftexec", self.plan("gpt2", "full_shard"), f"--data={data}", "--steps=1000000",
                                    "--metrics=/dev/stdout", "--progress=off"],
                                   stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment())
        self.addCleanup(process.kill)
        while not process.stdout.readline().startswith(b"{"):
            self.assertIsNone(process.poll())
        os.truncate(data, 0)
        _, errors = process.communicate(timeout=30)
        self.assertEqual((process.returncode, len(errors.splitlines())), (74, 1), errors)
        self.assertIn(b"became shorter", errors)


if __name__ == "__main__":
    unittest.main()
