"""Data formats and safetensors, through whole runs."""

import json
import os
import struct
import subprocess
import unittest

from harness import BIN, STRATEGIES, EndToEnd, environment


class DataAndWeights(EndToEnd):
    def test_the_three_formats_hold_the_same_tokens(self):
        tokens = self.text.read_bytes()
        words = b"".join(struct.pack("<H", t) for t in tokens)
        llmc, plain = self.dir / "llmc.bin", self.dir / "plain.u16"
        llmc.write_bytes(struct.pack("<3i", 20240520, 1, len(tokens)) + bytes(253 * 4) + words)
        plain.write_bytes(words)
        plan = self.plan("gpt2", "full_shard")
        losses = [[row["loss"] for row in self.train(plan, 2, *options, steps=3, data=data)]
                  for data, options in ((self.text, ()), (llmc, ()), (plain, ("--data-format=u16",)))]
        self.assertEqual(losses[0], losses[1])
        self.assertEqual(losses[0], losses[2])

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
        data.write_bytes(bytes(1 << 22))
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
