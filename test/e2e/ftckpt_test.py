"""ftckpt: what it says of checkpoints, what it makes of them, and what it does with damaged and hostile ones."""

import json
import math
import os
import pathlib
import resource
import shutil
import struct
import subprocess
import unittest
import zlib

from harness import BIN, EndToEnd, environment, metrics, run

STEP = "step-00000006"
WIDTH = {"F32": 4, "BF16": 2, "F16": 2}


def tensors(*paths):
    """Name -> (dtype, shape, bytes) of safetensors files."""
    found = {}
    for path in paths:
        data = path.read_bytes()
        end = 8 + struct.unpack("<Q", data[:8])[0]
        for name, entry in json.loads(data[8:end]).items():
            if name != "__metadata__":
                begin, stop = entry["data_offsets"]
                found[name] = (entry["dtype"], entry["shape"], data[end + begin:end + stop])
    return found


def values(dtype, raw):
    if dtype == "BF16":
        return [struct.unpack("<f", b"\0\0" + raw[i:i + 2])[0] for i in range(0, len(raw), 2)]
    return struct.unpack(f"<{len(raw) // WIDTH[dtype]}{ {'F32': 'f', 'F16': 'e'}[dtype]}", raw)


def signed(manifest):
    """The text of a manifest with a checksum that fits, as bytes."""
    body = json.dumps(manifest, indent=1)
    body = body[:body.rindex("\n}")] + ',\n "checksum": "'
    return f'{body}{zlib.crc32(body.encode()):08x}"\n}}\n'.encode()


class Ftckpt(EndToEnd):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        model, plan = cls.shared / "m.mlir", cls.shared / "p.bin"
        cls.folder = cls.shared / "run"
        options = ["--strategy=full_shard", "--mixed-precision=no"]
        for command in (["ftc", "model", "gpt2", "-o", model], ["ftc", "compile", model, *options, "-o", plan],
                        cls.training(plan, 2, cls.folder, "--save-every=3", "--steps=6")):
            done = run(*command)
            assert done.returncode == 0, done.stderr
        cls.saved = cls.folder / STEP
        cls.plan_file = plan

    @classmethod
    def training(cls, plan, ranks, folder, *options):
        return ["ftrun", f"--nproc-per-node={ranks}", "--standalone", BIN / "ftexec", plan, f"--data={cls.text}",
                f"--checkpoint-dir={folder}", "--progress=off", f"--eval-data={cls.text}",
                "--eval-every=3", "--eval-steps=1", *options]

    def convert(self, source, name, *options):
        self.check("ftckpt", "convert", source, self.dir / name, *options)
        return self.dir / name

    def refuse(self, status, *command, says=""):
        done = run("ftckpt", *command)
        self.assertEqual(done.returncode, status, done.stdout + done.stderr)
        self.assertEqual(done.stderr.count("\n"), 1, done.stderr)
        self.assertTrue(done.stderr.startswith("ftckpt: "), done.stderr)
        self.assertIn(says, done.stderr)
        return done

    def copy(self, name="copy"):
        shutil.copytree(self.saved, self.dir / name)
        return self.dir / name

    def test_list_and_show(self):
        folder = self.dir / "ck"
        shutil.copytree(self.folder, folder)
        (folder / "step-00000009").mkdir()
        (folder / "step-00000003/optimizer.safetensors").unlink()
        lines = self.check("ftckpt", "list", folder).stdout.splitlines()
        self.assertEqual(len(lines), 4)
        self.assertIn("no manifest", lines[1])
        self.assertIn("whole", lines[2])
        self.assertIn("full", lines[2])
        self.assertIn("optimizer.safetensors", lines[3])
        shown = json.loads(self.check("ftckpt", "show", self.folder, "--json", "--tensors").stdout)
        self.assertEqual(shown["position"]["steps"], 6)
        self.assertEqual(shown["ranks"], 2)
        expected = tensors(*self.saved.glob("*.safetensors"))
        self.assertEqual({t["name"]: t["shape"] for t in shown["tensors"]}, {n: e[1] for n, e in expected.items()})
        text = self.check("ftckpt", "show", self.saved, "--tensors").stdout
        for name in expected:
            self.assertIn(name, text)
        self.refuse(74, "list", self.dir / "not there")
        self.refuse(65, "list", self.saved, says="is a checkpoint")

    def test_the_newest_is_that_of_resume_auto(self):
        """Not one that its name says to be newer than it is, nor a damaged one."""
        folder = self.dir / "ck"
        shutil.copytree(self.folder, folder)
        whole = self.folder / "step-00000003"
        shutil.copytree(whole, folder / "step-00000012")
        (folder / "step-00000008").mkdir()
        (folder / STEP / "optimizer.safetensors").unlink()
        shutil.copytree(folder, self.dir / "resumed")  # a run that goes on moves those aside
        done = self.check(*self.training(self.plan_file, 2, self.dir / "resumed", "--resume=auto", "--steps=3"))
        self.assertIn(f"resumed from '{self.dir}/resumed/step-00000003'", done.stdout)
        passed_over = ["step-00000012/manifest.json' is of 3 steps", "step-00000008", f"{STEP}/optimizer.safetensors'"]
        for command in (("show", folder), ("diff", folder, whole), ("diff", whole, folder), ("convert", folder, self.dir / "out")):
            with self.subTest(command=command):
                done = self.check("ftckpt", *command)
                lines = done.stderr.splitlines()
                self.assertEqual(len(lines), 3, done.stderr)
                for line, words in zip(lines, passed_over):
                    self.assertTrue(line.startswith(f"ftckpt: passed over the checkpoint '{folder}/step-000000"), line)
                    self.assertIn(words, line)
        self.assertEqual(json.loads(self.check("ftckpt", "show", folder, "--json").stdout)["position"]["steps"], 3)
        self.assertEqual(json.loads((self.dir / "out/manifest.json").read_text())["position"]["steps"], 3)
        shutil.rmtree(folder / "step-00000003")
        done = run("ftckpt", "show", folder)
        self.assertEqual((done.returncode, len(done.stderr.splitlines())), (65, 4), done.stderr)
        self.assertIn(f"no checkpoint in '{folder}' is whole", done.stderr)

    def test_a_name_says_the_step(self):
        for name in ("step-00000009", "deep/step-00000007/"):
            for form in ("sharded", "hf"):
                self.refuse(65, "convert", self.saved, self.dir / name, f"--to={form}", says=f"is of step 6; call it {STEP}, or something else")
        self.assertEqual(list(self.dir.iterdir()), [])
        self.check("ftckpt", "convert", self.saved, self.dir / STEP)
        self.check("ftckpt", "convert", self.saved, self.dir / "step-9")

    def test_there_and_back_is_byte_for_byte(self):
        sharded = self.convert(self.saved, "s", "--to=sharded", "--ranks=3")
        self.assertEqual(len(list(sharded.glob("rank-*-of-00003.safetensors"))), 3)
        local = self.convert(sharded, "l", "--to=local")
        for source in (sharded, local):
            back = self.convert(source, f"back-{source.name}", "--to=full")
            for path in self.saved.glob("*.safetensors"):
                self.assertEqual(path.read_bytes(), (back / path.name).read_bytes(), path.name)
            self.check("ftckpt", "diff", self.saved, back)
        before, after = (json.loads((f / "manifest.json").read_text()) for f in (self.saved, sharded))
        for part in ("position", "health", "run", "model", "settings", "data", "plan_hash", "eval_loss"):
            self.assertEqual(before[part], after[part], part)

    def test_a_run_goes_on_from_converted_ones_to_the_bit(self):
        whole = self.dir / "whole.jsonl"
        self.check(*self.training(self.plan_file, 2, self.dir / "w", f"--resume={self.saved}", "--steps=12", f"--metrics={whole}"))
        kinds = {"s2": ["--to=sharded"], "l2": ["--to=local"], "s5": ["--to=sharded", "--ranks=5"]}
        for name, options in kinds.items():
            converted, out = self.convert(self.saved, name, *options), self.dir / f"{name}.jsonl"
            self.check(*self.training(self.plan_file, 2, self.dir / f"run-{name}", f"--resume={converted}", "--steps=12", f"--metrics={out}"))
            losses = [[(row.get("step"), row.get("loss"), row.get("grad_norm")) for row in metrics(path)] for path in (whole, out)]
            self.assertEqual(*losses)
            self.assertGreater(len(losses[0]), 5)
            self.check("ftckpt", "diff", self.dir / "w", self.dir / f"run-{name}")

    def test_types_for_hugging_face(self):
        for dtype, kind in (("bf16", "BF16"), ("fp16", "F16"), ("fp32", "F32")):
            folder = self.convert(self.saved, dtype, "--to=hf", f"--dtype={dtype}", "--max-shard-size=100KB")
            index = json.loads((folder / "model.safetensors.index.json").read_text())
            parts = sorted(folder.glob("model-*.safetensors"))
            self.assertEqual(set(index["weight_map"].values()), {p.name for p in parts})
            made, expected = tensors(*parts), tensors(self.saved / "model.safetensors")
            self.assertEqual(set(made), set(expected))
            for name, (made_dtype, shape, raw) in made.items():
                self.assertEqual((made_dtype, shape), (kind, expected[name][1]))
                exact = values("F32", expected[name][2])
                if kind == "BF16":  # nearest, ties to even, of the upper half of the bits
                    bits = struct.unpack(f"<{len(exact)}I", expected[name][2])
                    rounded = [(b + 0x7FFF + (b >> 16 & 1)) >> 16 for b in bits]
                    self.assertEqual(struct.unpack(f"<{len(exact)}H", raw), tuple(rounded), name)
                else:
                    self.assertEqual(raw, struct.pack(f"<{len(exact)}{ {'F16': 'e', 'F32': 'f'}[kind]}", *exact), name)
            self.assertLess(max(p.stat().st_size for p in parts), 100_000 + 4096)

    def test_diff_agrees_with_an_independent_computation(self):
        other = self.folder / "step-00000003"
        bf16 = self.convert(self.saved, "bf16", "--dtype=bf16")
        hf = self.convert(self.saved, "hf", "--to=hf", "--dtype=fp16")
        for right in (other, bf16, hf, hf / "model.safetensors"):
            done = run("ftckpt", "diff", self.saved, right)
            self.assertEqual(done.returncode, 1, done.stderr)
            folder = right if right.is_dir() else right.parent
            mine, theirs = (tensors(*f.glob("*.safetensors")) for f in (self.saved, folder))
            lines = {line.split()[1]: line for line in done.stdout.splitlines() if line.startswith(("equal ", "different "))}
            self.assertEqual(set(lines), set(mine) & set(theirs))
            for name, line in lines.items():
                a, b = values(mine[name][0], mine[name][2]), values(theirs[name][0], theirs[name][2])
                differences = [(abs(x - y), abs(x - y) / max(abs(x), abs(y))) for x, y in zip(a, b) if x != y]
                if not differences:
                    self.assertTrue(line.startswith("equal"), line)
                    continue
                counted = line.split(": ")[1].split()[0].replace(",", "")
                self.assertEqual(int(counted), len(differences), line)
                absolute = float(line.split(" by ")[1].split()[0])
                relative = float(line.split(" relatively ")[1])
                self.assertTrue(math.isclose(absolute, max(d[0] for d in differences), rel_tol=1e-5), line)
                self.assertTrue(math.isclose(relative, max(d[1] for d in differences), rel_tol=1e-5), line)

    def test_verify_finds_each_planted_damage(self):
        self.assertIn("whole", self.check("ftckpt", "verify", self.saved).stdout)
        sharded = self.convert(self.saved, "s", "--to=sharded", "--ranks=3")
        for source in (self.saved, sharded):
            for path in sorted(source.iterdir()):
                size = path.stat().st_size
                for place in (0, 7, 8, size // 3, size // 2, size - 1):
                    folder = self.dir / "damaged"
                    shutil.copytree(source, folder)
                    data = bytearray((folder / path.name).read_bytes())
                    data[place] ^= 0x10
                    (folder / path.name).write_bytes(data)
                    done = self.refuse(65, "verify", folder, says=path.name)
                    if path.suffix == ".safetensors":
                        self.assertIn("tensor", done.stderr)
                        self.assertIn("1 of", done.stderr)
                    shutil.rmtree(folder)

    def test_verify_lists_all_damaged_files(self):
        folder = self.convert(self.saved, "s", "--to=sharded", "--ranks=4")
        (folder / "rank-00000-of-00004.safetensors").unlink()
        with open(folder / "rank-00001-of-00004.safetensors", "r+b") as cut:
            cut.truncate(100)
        (folder / "rank-00002-of-00004.safetensors").unlink()
        (folder / "rank-00002-of-00004.safetensors").symlink_to(self.saved / "model.safetensors")
        (folder / "a\x1b[31mstranger").touch()
        done = self.refuse(65, "verify", folder, says="3 of 4 files")
        self.assertEqual(done.stdout.count("damaged  "), 3)
        self.assertIn("not part of it", done.stdout)
        self.assertNotIn("\x1b", done.stdout)
        (folder / "manifest.json").unlink()
        self.refuse(65, "verify", folder, says="manifest")

    def test_convert_never_touches_what_is_there(self):
        before = {p.name: (p.stat().st_mtime_ns, p.read_bytes()) for p in self.saved.iterdir()}
        (self.dir / "there").mkdir()
        self.refuse(65, "convert", self.saved, self.dir / "there", says="is there already")
        self.refuse(65, "convert", self.saved, self.saved / "inside", says="lies in")
        self.refuse(65, "convert", self.saved, self.dir / "x", "--to=local", "--ranks=3", says="sharded")
        self.refuse(2, "convert", self.saved, self.dir / "x", "--to=hf", "--optimizer-dtype=bf16")
        self.refuse(2, "convert", self.saved, self.dir / "x", "--max-shard-size=0")
        self.refuse(2, "convert", self.saved, self.dir / "x", "--mesh=shard:0")
        self.refuse(2, "frobnicate")
        copy = self.copy()
        with open(copy / "optimizer.safetensors", "r+b") as damaged:
            damaged.seek(-1, os.SEEK_END)
            damaged.write(b"\x55")
        self.refuse(65, "convert", copy, self.dir / "x", "--to=sharded", says="optimizer.safetensors")
        self.assertEqual(sorted(p.name for p in self.dir.iterdir()), ["copy", "there"])
        self.assertEqual(before, {p.name: (p.stat().st_mtime_ns, p.read_bytes()) for p in self.saved.iterdir()})

    def test_memory_does_not_grow_with_the_model(self):
        mlir, plan, folder = self.dir / "m.mlir", self.dir / "p.bin", self.dir / "large"
        self.check("ftc", "model", "gpt2", "--layers=6", "--hidden=768", "--ffn=3072", "--batch=1", "--seq=16", "-o", mlir)
        self.check("ftc", "compile", mlir, "--strategy=full_shard", "-o", plan)
        self.check("ftexec", plan, f"--data={self.text}", "--steps=1", f"--checkpoint-dir={folder}", "--progress=off")
        bytes_there = sum(p.stat().st_size for p in (folder / "step-00000001").iterdir())
        limit = 256 << 20
        self.assertGreater(bytes_there, 2 * limit - (64 << 20))

        def limited(*command):
            done = subprocess.run([str(BIN / "ftckpt"), *map(str, command)], capture_output=True, text=True, env=environment(),
                                  preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (limit, limit)), timeout=300)
            self.assertEqual(done.returncode, 0, done.stderr)

        source = folder / "step-00000001"
        limited("verify", source)
        limited("convert", source, self.dir / "s3", "--to=sharded", "--ranks=3")
        limited("convert", self.dir / "s3", self.dir / "hf", "--to=hf")
        limited("diff", source, self.dir / "s3")
        limited("diff", source, self.dir / "hf")

    def test_hostile_manifests_are_refused_in_one_line(self):
        original = json.loads((self.saved / "manifest.json").read_text())
        del original["checksum"]

        def attempt(change, may_pass=False):
            folder = self.copy("hostile")
            manifest = json.loads(json.dumps(original))
            change(manifest)
            (folder / "manifest.json").write_bytes(signed(manifest))
            for command in (["show", folder], ["show", folder, "--json", "--tensors"], ["list", self.dir], ["verify", folder],
                            ["diff", self.saved, folder], ["convert", folder, self.dir / "out", "--to=sharded"]):
                done = run("ftckpt", *command, timeout=60)
                self.assertIn(done.returncode, (0, 1, 65), f"{command} {done.stderr}")
                self.assertLessEqual(len(done.stderr.splitlines()), 1, done.stderr)
                self.assertLess(len(done.stderr), 5000)
                self.assertLess(max(map(len, done.stdout.splitlines()), default=0), 30_000)
                for sign in ("\x1b", "\x07", "\u202e"):
                    self.assertNotIn(sign, done.stdout + done.stderr)
                if command[0] in ("verify", "convert") and not may_pass:
                    self.assertEqual(done.returncode, 65, f"{command} {done.stdout}")
            shutil.rmtree(folder)
            shutil.rmtree(self.dir / "out", ignore_errors=True)

        def put(value, *keys):
            def change(manifest):
                at = manifest
                for key in keys[:-1]:
                    at = at[key]
                at[keys[-1]] = value
            return change

        attempt(lambda manifest: None, may_pass=True)
        evil = "\x1b[31m\x07\u202e" + "A" * 100_000
        for keys in (("model", "name"), ("producer",), ("strategy",), ("model", "fingerprint"), ("plan_hash",),
                     ("run", "lr_schedule"), ("model", "facts", 0, "name"), ("platform", "device")):
            attempt(put(evil, *keys), may_pass=True)
        attempt(put("NaN", "eval_loss"), may_pass=True)
        attempt(put({"sources": [{"files": [{"path": evil}]}] * 9}, "data"), may_pass=True)
        for name in ("../model.safetensors", "/etc/passwd", "", "..", evil):
            attempt(put(name, "files", 0, "name"))
        for number in (0, 1 << 32, (1 << 64) - 1):
            attempt(put(number, "files", 0, "bytes"))
        attempt(put(1 << 10, "state", "shard"), may_pass=True)
        attempt(put(1 << 20, "state", "shard"), may_pass=True)  # no run of so many ranks is converted
        for number in ((1 << 32) - 1, 0):
            attempt(put(number, "state", "shard"))
        for number in (1, 1 << 48, (1 << 64) - 1):
            attempt(put(number, "state", "units", 0, "elements"), may_pass=number == 1 << 48)
            attempt(put(number, "state", "block_elements"), may_pass=number == 1)
        attempt(put([1 << 40, 1 << 40], "state", "parameters", 0, "shape"))
        attempt(put([1 << 62, 2], "state", "parameters", 0, "shape"))
        attempt(put([-1, -4], "state", "parameters", 0, "shape"))
        attempt(put(1 << 31, "state", "parameters", 0, "unit"))
        attempt(put(evil, "state", "parameters", 0, "name"))
        attempt(put("../../x", "state", "buffers", 0, "role"))
        attempt(put(evil, "type"))
        attempt(put(1, "block_bytes"))
        attempt(put(2, "version"))
        attempt(put("sharded", "type"))
        attempt(put([], "files"))


if __name__ == "__main__":
    unittest.main()
