"""Data in many files: lists, folders, globs, weights, through whole runs."""

import collections
import random
import resource
import struct
import subprocess
import unittest

from harness import BIN, EndToEnd, environment, metrics, run

SEQ = 16
BLOCK = 256  # sequences in which every source has its part, to the nearest
SMALL = ("--layers=1", "--hidden=16", "--heads=2", "--kv-heads=2", "--ffn=32", f"--seq={SEQ}")


class DataFiles(EndToEnd):
    def small(self, batch=1):
        return self.plan("llama", "full_shard", *SMALL, f"--batch={batch}")

    def split(self, folder, sequences):
        """Files that hold so many sequences each, in all formats, and one file with the same sequences in the same order."""
        folder.mkdir()
        text, at = self.text.read_bytes(), 0
        for i, count in enumerate(sequences):
            part = text[at:at + count * SEQ + 1]  # the last token is the first one of the next file
            at += count * SEQ
            wide = lambda width: b"".join(t.to_bytes(width, "little") for t in part)
            header = struct.pack("<3i", 20240520, 1, len(part)) + bytes(253 * 4)
            name, content = ((f"{i:02}.txt", part), (f"{i:02}.u16", wide(2)), (f"{i:02}.u32", wide(4)),
                             (f"{i:02}.bin", header + wide(2)))[i % 4]
            (folder / name).write_bytes(content)
        whole = folder.with_suffix(".txt")
        whole.write_bytes(text[:at + 1])
        return whole

    def test_many_files_are_as_one(self):
        whole = self.split(self.dir / "parts", (7, 1, 30, 12, 5, 2, 1, 9))
        files = sorted((self.dir / "parts").iterdir())
        for world, shuffle in ((1, "on"), (2, "on"), (3, "off")):
            spellings = [whole, self.dir / "parts", f"{self.dir}/p*s/*", ",".join(map(str, files)),
                         f"{files[0]},{self.dir}/parts/0[1-9].*"]
            rows = [self.train(self.small(2), world, f"--shuffle={shuffle}", "--lr=0.01", steps=25, data=data)
                    for data in spellings]
            losses = [[(row["loss"], row["grad_norm"]) for row in found] for found in rows]
            self.assertEqual(losses, losses[:1] * len(losses))
            self.assertEqual(len(set(losses[0])), 25)
        # Without --steps: one pass over all of them.
        out = self.dir / "pass.jsonl"
        done = self.check("ftexec", self.small(2), f"--data={self.dir}/parts", f"--metrics={out}", "--progress=off")
        self.assertEqual(len(metrics(out)), (7 + 1 + 30 + 12 + 5 + 2 + 1 + 9 + 1) // 2)
        self.assertIn(f"data 8 files, {files[0]} ... {files[-1]} (text and u16 and u32 and llmc, ", done.stdout)

    def test_evaluation_on_many_files(self):
        whole = self.split(self.dir / "parts", (3, 1, 6))
        found = []
        for data in (whole, self.dir / "parts"):
            out = self.dir / "eval.jsonl"
            self.check("ftexec", self.small(2), f"--data={self.text}", f"--eval-data={data}", "--steps=1", f"--metrics={out}",
                       "--progress=off")
            found.append([(row["eval_loss"], row["eval_tokens"]) for row in metrics(out) if "eval_loss" in row])
        self.assertEqual((found[0], len(found[0])), (found[1], 1))
        self.assertEqual(found[0][0][1], 10 * SEQ)

    def losses(self, data, steps, world=1):
        """Of a model that does not learn: each is that of the sequences at its place of the row."""
        return [row["loss"] for row in self.train(self.small(), world, "--lr=0", "--shuffle=off", steps=steps, data=data)]

    def test_weights_deal_out_sequences(self):
        """Which sequences a weighted run saw is told by their losses."""
        draw, counts, known = random.Random(1), {"a": 50, "b": 9}, {}
        for name, count in counts.items():
            (self.dir / name).write_bytes(bytes(draw.randrange(32, 127) for _ in range(count * SEQ + 1)))
            for k, loss in enumerate(self.losses(self.dir / name, count)):
                known[loss] = (name, k)
        self.assertEqual(len(known), sum(counts.values()))
        steps = 2 * BLOCK + 40
        data = f"{self.dir}/a:3,{self.dir}/b:1"
        seen = self.losses(data, steps)
        where = [known[loss] for loss in seen]
        for name, count in counts.items():
            own = [k for source, k in where if source == name]
            self.assertEqual(own, [k % count for k in range(len(own))])  # in order, epoch after epoch
        for block in range(2):
            self.assertEqual(collections.Counter(name for name, _ in where[block * BLOCK:][:BLOCK]), {"a": 192, "b": 64})
        names = "".join(name for name, _ in where)
        self.assertNotIn("b" * 20, names)  # mixed
        self.assertNotEqual(names[:BLOCK], names[BLOCK:2 * BLOCK])
        # Two ranks take turns in the same row.
        for step, loss in enumerate(self.losses(data, 60, world=2)):
            self.assertAlmostEqual(loss, (seen[2 * step] + seen[2 * step + 1]) / 2, places=5)
        done = self.check("ftexec", self.small(), f"--data={data}", "--steps=1", "--progress=off")
        self.assertIn("data 2 sources (text, ", done.stdout)
        self.assertIn(f"\n  75% from {self.dir}/a (text, {50 * SEQ + 1} tokens, 50 sequences)\n", done.stdout)
        self.assertIn(f"\n  25% from {self.dir}/b (text, ", done.stdout)

    def test_names_with_commas_and_colons(self):
        for name in ("a,b.txt", "a:1", "a:1,b:2", "[x]*.txt"):
            (self.dir / name).write_bytes(self.text.read_bytes())
            done = self.check("ftexec", self.small(), f"--data={self.dir / name}", "--steps=1", "--progress=off")
            self.assertIn(f"data {self.dir / name} (text, ", done.stdout)

    def refused(self, data, *words, status=65, options=()):
        done = run("ftexec", self.small(), f"--data={data}", "--steps=1", "--progress=off", *options)
        self.assertEqual((done.returncode, len(done.stderr.splitlines())), (status, 1), done.stderr)
        for word in words:
            self.assertIn(str(word), done.stderr)

    def test_refusals(self):
        for weight in ("0", "nan", "-1", "1e400", "inf", "x"):
            self.refused(f"{self.text}:{weight}", f"the weight '{weight}'", status=2)
        self.refused(f"{self.text}:1,{self.text}", "a weight", status=2)
        self.refused(f"{self.text},,{self.text}", "without a path", status=2)
        self.refused(f"{self.dir}/none*.bin", f"no file matches '{self.dir}/none*.bin'", status=74)
        self.refused(self.dir, "has no file in it")
        self.refused(f"{self.text},{self.text}", "named twice")
        self.refused(self.text, "takes no weights", status=2, options=(f"--eval-data={self.text}:1",))
        short, sub = self.dir / "short", self.dir / "sub"
        short.write_bytes(b"x" * SEQ)
        self.refused(f"{self.text},{short}", short, "too short")
        self.refused(self.dir, short, "too short", "a folder is read whole")
        short.write_bytes(b"x" * (SEQ + 1))
        self.refused(self.dir, "would lie in", options=(f"--metrics={self.dir}/m.jsonl",))
        for option in ("--checkpoint-dir", "--log-dir", "--save-hf"):
            self.refused(self.dir, "would lie in", options=(f"{option}={self.dir}/new",))
            self.refused(self.text, "would lie in", "--eval-data", options=(f"--eval-data={self.dir}", f"{option}={self.dir}"))
        self.refused(f"{self.dir}/s*", "are the same file", options=(f"--metrics={short}",))
        self.assertEqual(short.read_bytes(), b"x" * (SEQ + 1))
        sub.mkdir()
        self.refused(self.dir, sub, "is a directory")

    def test_ranks_that_see_other_data(self):
        """The same names and sizes, other contents: as when a file system has not yet shown a change to every host."""
        for rank, change in enumerate((b"x", b"y")):
            (self.dir / str(rank)).mkdir()
            (self.dir / str(rank) / "a").write_bytes(self.text.read_bytes())
            (self.dir / str(rank) / "b").write_bytes(self.text.read_bytes()[:-1] + change)
        chooser = self.dir / "choose.sh"
        for options in ('--data=$d', f'--data={self.text} --eval-data=$d'):
            chooser.write_text(f"#!/bin/sh\nd={self.dir}/$RANK\nexec {BIN}/ftexec {self.small()} --steps=2 {options}\n")
            chooser.chmod(0o755)
            done = run("ftrun", "--nproc-per-node=2", "--standalone", chooser, timeout=60)
            self.assertEqual(done.returncode, 65, done.stderr)
            self.assertIn("ranks differ in eval_data" if "eval" in options else "ranks differ in data", done.stderr)
        # In other folders, but the same.
        (self.dir / "1" / "b").write_bytes((self.dir / "0" / "b").read_bytes())
        self.check("ftrun", "--nproc-per-node=2", "--standalone", chooser)

    def test_more_files_than_descriptors(self):
        folder = self.dir / "many"
        folder.mkdir()
        for i in range(300):
            (folder / f"{i:03}").write_bytes(self.text.read_bytes()[i * 20:][:SEQ + 1])
        few = lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64))
        for data in (folder, f"{folder}/*"):
            done = subprocess.run([BIN / "ftexec", self.small(), f"--data={data}", "--steps=2", "--progress=off"], text=True,
                                  capture_output=True, timeout=60, env=environment(), stdin=subprocess.DEVNULL, preexec_fn=few)
            self.assertEqual((done.returncode, done.stderr), (0, ""))
            self.assertIn("data 300 files", done.stdout)


if __name__ == "__main__":
    unittest.main()
