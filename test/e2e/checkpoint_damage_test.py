"""Checkpoints that something happened to, or that somebody forged: refused in one line that names the file, passed over by auto."""

import copy
import os
import random
import shutil
import subprocess
import unittest

from checkpoint_files import MANIFEST, manifest_bytes, read_checkpoints, read_manifest, resumed_after
from harness import BIN, EndToEnd, environment

EVERYTHING = os.environ.get("FT_EVERY_FAULT", "0") != "0"
OLD, NEW = "step-00000001", "step-00000002"
NOBODY = 65534


class CheckpointDamage(EndToEnd):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.good = {}

    def setUp(self):
        super().setUp()
        self.folder = self.dir / "checkpoints"
        self.new = self.folder / NEW
        self.draw = random.Random(12)

    def command(self, *options, world=1, steps=2):
        launcher = [BIN / "ftrun", "--standalone", f"--nproc-per-node={world}"] if world > 1 else []
        return [str(word) for word in (*launcher, BIN / "ftexec", self.plan("gpt2", "full_shard", "--layers=1"),
                                       f"--data={self.text}", f"--steps={steps}", "--progress=off", "--threads=1", *options)]

    def run_it(self, *options, **how):
        who = {"user": how.pop("user")} if "user" in how else {}
        env = environment(OMP_NUM_THREADS=1)
        return subprocess.run(self.command(*options, **how), capture_output=True, text=True, errors="replace", timeout=120, env=env,
                              stdin=subprocess.DEVNULL, **who)

    def restore(self, kind="full", world=1):
        """Two good checkpoints, made once."""
        if (kind, world) not in self.good:
            made = self.shared / f"good-{kind}-{world}"
            done = self.run_it("--save-every=1", f"--checkpoint-dir={made}", f"--state-dict-type={kind}", world=world)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.good[kind, world] = made
        shutil.rmtree(self.folder, ignore_errors=True)
        shutil.copytree(self.good[kind, world], self.folder)

    def named(self, **how):
        return self.run_it(f"--resume={self.new}", **how)

    def auto(self, **how):
        return self.run_it("--resume=auto", f"--checkpoint-dir={self.folder}", **how)

    def lines(self, done):
        return [line for line in done.stderr.splitlines() if not line.startswith("ftrun:")]

    def check_refused(self, *words, status=65, world=1):
        """By name: one line with these words. Returns it."""
        done = self.named(world=world)
        lines = self.lines(done)
        self.assertEqual((done.returncode, len(lines)), (status, 1), done.stderr)
        for word in words:
            self.assertIn(word, lines[0])
        self.assertTrue(lines[0].isprintable(), lines[0])
        return lines[0]

    def check_passed_over(self, *words, world=1):
        """By auto: it says why, and the older one is taken."""
        done = self.auto(world=world)
        lines = self.lines(done)
        self.assertEqual((done.returncode, len(lines), resumed_after(done.stdout)), (0, 1, 1), done.stderr)
        self.assertIn("passed over the checkpoint", lines[0])
        for word in (NEW, *words):
            self.assertIn(word, lines[0])

    def check_damaged(self, *words, world=1, auto=True):
        self.check_refused(*words, world=world)
        if auto:
            self.check_passed_over(*words, world=world)

    def files(self):
        return sorted(path.name for path in self.new.iterdir())

    def flip(self, name, at, bit):
        content = bytearray((self.new / name).read_bytes())
        content[at] ^= 1 << bit
        (self.new / name).write_bytes(content)

    def test_bytes_flipped(self):
        for kind, world in (("full", 1), ("sharded", 1), ("local", 1)):
            self.restore(kind, world)
            for name, size in [(name, (self.new / name).stat().st_size) for name in self.files()]:
                places = [0, 7, 8, size - 1] + [self.draw.randrange(size) for _ in range(60 if EVERYTHING else 3)]
                for number, at in enumerate(places if kind == "full" else places[3:]):
                    with self.subTest(kind=kind, file=name, at=at):
                        self.restore(kind, world)
                        self.flip(name, at, self.draw.randrange(8))
                        self.check_damaged(name, auto=number % 3 == 0)

    def test_the_tensor_is_named(self):
        self.restore()
        name = next(name for name in self.files() if name.startswith("model") and name.endswith(".safetensors"))
        self.flip(name, (self.new / name).stat().st_size - 1, 0)
        self.assertIn("the header or one of the tensors '", self.check_refused(name))

    def test_files_cut_longer_missing(self):
        self.restore()
        for name, size in [(name, (self.new / name).stat().st_size) for name in self.files()]:
            for number, to in enumerate((0, 1, size // 2, size - 1, size + 1, size + (1 << 40), None)):
                with self.subTest(file=name, to=to):
                    self.restore()
                    if to is None:
                        (self.new / name).unlink()
                    else:
                        os.truncate(self.new / name, to)
                    self.check_damaged(name, auto=number % 3 == 0)

    def test_files_of_another_kind(self):
        """Links, folders, pipes and sockets in place of files: nothing is followed, nothing waits."""
        self.restore()
        for name in self.files():
            for put in ("link", "folder", "pipe", "loop"):
                with self.subTest(file=name, put=put):
                    self.restore()
                    path = self.new / name
                    aside = self.dir / "aside"
                    shutil.move(path, aside)
                    {"link": lambda: path.symlink_to(aside), "folder": path.mkdir, "pipe": lambda: os.mkfifo(path),
                     "loop": lambda: path.symlink_to(path.name)}[put]()
                    self.check_damaged(name, auto=put == "link")

    def test_files_swapped(self):
        self.restore()
        for name in self.files():
            with self.subTest(file=name):
                self.restore()
                if (self.new / name).read_bytes() == (self.folder / OLD / name).read_bytes():
                    continue
                shutil.copy(self.folder / OLD / name, self.new / name)
                # A manifest of step 1 beside files of step 2: the files are what disagrees with it.
                self.check_damaged(*([] if name == MANIFEST else [name]))
        self.restore()
        names = [name for name in self.files() if name.endswith(".safetensors")]
        self.assertGreater(len(names), 1)
        (self.new / names[0]).rename(self.dir / "aside")
        (self.new / names[1]).rename(self.new / names[0])
        (self.dir / "aside").rename(self.new / names[1])
        self.check_damaged(".safetensors")

    def test_whole_folders_swapped(self):
        """The older checkpoint under the newer one's name would take the run back unseen."""
        self.restore()
        shutil.rmtree(self.new)
        shutil.copytree(self.folder / OLD, self.new)
        self.check_passed_over("1 steps")
        self.assertEqual(self.named().returncode, 0)  # who names it means it

    def test_ranks(self):
        """What one rank alone reads is known to all."""
        for kind in ("sharded", "full"):
            self.restore(kind, 2)
            names = [name for name in self.files() if name.endswith(".safetensors")]
            for name in names:
                with self.subTest(kind=kind, file=name):
                    self.restore(kind, 2)
                    self.flip(name, (self.new / name).stat().st_size - 3, 1)
                    self.check_damaged(name, world=2)
        self.restore("sharded", 2)
        # Another world size reads the same files.
        name = [name for name in self.files() if name.endswith(".safetensors")][-1]
        self.flip(name, (self.new / name).stat().st_size - 3, 1)
        self.check_damaged(name)

    def test_none_is_whole(self):
        """The run begins, and says so."""
        self.restore()
        for step in (OLD, NEW):
            name = next(name for name in self.files() if name.endswith(".safetensors"))
            os.truncate(self.folder / step / name, 100)
        done = self.auto()
        lines = self.lines(done)
        self.assertEqual((done.returncode, len(lines), resumed_after(done.stdout)), (0, 3, 0), done.stderr)
        self.assertIn(NEW, lines[0])
        self.assertIn(OLD, lines[1])
        self.assertIn("is whole: the run begins", lines[2])
        shutil.rmtree(self.folder)
        done = self.auto()
        self.assertEqual((done.returncode, done.stderr, resumed_after(done.stdout)), (0, "", 0))

    def test_no_checkpoint(self):
        self.restore()
        done = self.run_it(f"--resume={self.folder}")
        self.assertEqual((done.returncode, len(self.lines(done))), (65, 1), done.stderr)
        self.assertIn(MANIFEST, done.stderr)
        done = self.run_it(f"--resume={self.dir / 'nowhere'}")
        self.assertEqual((done.returncode, len(self.lines(done))), (74, 1), done.stderr)
        self.assertIn("nowhere", done.stderr)

    # Manifests that lie, with the right checksum.

    def forge(self, change):
        manifest = read_manifest((self.new / MANIFEST).read_bytes())
        changed = change(manifest)
        (self.new / MANIFEST).write_bytes(manifest_bytes(manifest if changed is None else changed))

    def check_forged(self, change, *words, auto=False, kind="full"):
        self.restore(kind)
        self.forge(change)
        self.check_refused(*words)
        if auto:
            self.check_passed_over(*words)

    def test_names_that_lead_elsewhere(self):
        for name in (f"../{OLD}/model.safetensors", "/etc/passwd", "..", ".", "", "a/b", "a\0b", "\x1b[31m", "/dev/zero"):
            with self.subTest(name=name):
                self.check_forged(lambda m: m["files"].append({"name": name, "bytes": 0, "crc32": ""}), auto=True)
                self.check_forged(lambda m: m["files"][0].update(name=name))
        self.check_forged(lambda m: m["files"].append(dict(m["files"][0])), "twice", auto=True)
        self.check_forged(lambda m: m["files"].append({"name": MANIFEST, "bytes": 0, "crc32": ""}), MANIFEST)

    def test_files_of_other_sizes(self):
        for value in (0, 1, 2**31, 2**32, 2**40, 2**62, 2**63, 2**64 - 1):
            with self.subTest(bytes=value):
                self.check_forged(lambda m: m["files"][0].update(bytes=value))
        self.check_forged(lambda m: m["files"][0].update(crc32="AAAA"))
        self.check_forged(lambda m: m["files"][0].update(crc32=""), auto=True)
        self.check_forged(lambda m: m.update(files=[]), "missing", auto=True)

    def test_every_number_is_hostile(self):
        """No number of the state's layout, and none of the counts, crashes, hangs or takes memory without end."""
        self.restore()
        original = read_manifest((self.new / MANIFEST).read_bytes())
        places = [path for path in self.numbers(original) if path[0] in ("state", "position", "health", "run", "block_bytes", "version")]
        values = (0, -1, 1, 3, 2**31 - 1, 2**32 - 1, 2**62, 2**63 - 1, 2**64 - 1, 1e308, "x")
        cases = [(path, value) for path in places for value in values]
        some = cases if EVERYTHING else self.draw.sample(cases, 70)
        for path, value in some:
            with self.subTest(at=path, value=value):
                self.restore()
                manifest = copy.deepcopy(original)
                at = manifest
                for key in path[:-1]:
                    at = at[key]
                at[path[-1]] = value
                (self.new / MANIFEST).write_bytes(manifest_bytes(manifest))
                done = self.named()
                self.assertIn(done.returncode, (0, 65), done.stderr)
                self.assertEqual(len(self.lines(done)), 1 if done.returncode else 0, done.stderr)
                self.assertTrue("".join(self.lines(done)).isprintable(), done.stderr)

    def numbers(self, node, path=()):
        """Paths of all numbers and booleans; of long lists the first and the last."""
        if isinstance(node, dict):
            return [p for key, value in node.items() for p in self.numbers(value, (*path, key))]
        if isinstance(node, list):
            some = sorted({0, len(node) - 1}) if node else []
            return [p for i in some for p in self.numbers(node[i], (*path, i))]
        return [path] if isinstance(node, (int, float)) else []

    def test_other_layouts(self):
        def overlap(manifest):
            manifest["state"]["parameters"][1]["offset"] = manifest["state"]["parameters"][0]["offset"]

        def twice(manifest):
            manifest["state"]["parameters"].append(dict(manifest["state"]["parameters"][-1]))

        self.check_forged(overlap, MANIFEST, auto=True)
        self.check_forged(twice, MANIFEST, auto=True)
        for ranks in (2, 3, 2**16, 2**20, 2**31):
            self.check_forged(lambda m: m["state"].update(shard=ranks, replica=1), kind="sharded", auto=True)
        self.check_forged(lambda m: m["state"].update(shard=65536, replica=65536), MANIFEST)
        self.check_forged(lambda m: m.update(type="\x1b]0;x\x07"), MANIFEST)
        self.check_forged(lambda m: m.update(type="sharded"), MANIFEST)
        self.check_forged(lambda m: m["state"]["parameters"][0].update(name="\x1b[2J"))
        self.check_forged(lambda m: m["state"]["parameters"][0].update(shape=[2**62, 2**62, 4]), MANIFEST)
        self.check_forged(lambda m: m["state"]["buffers"][0].update(dtype="complex128"), MANIFEST)
        self.check_forged(lambda m: m["state"]["buffers"][0].update(role="../../x"), MANIFEST)
        self.check_forged(lambda m: m["state"].update(units=[]), MANIFEST)
        self.check_forged(lambda m: m["health"].update(scaler=[1.0] * 100000))
        self.check_forged(lambda m: m["position"].update(applied=m["position"]["steps"] + 1))
        self.check_forged(lambda m: m.update(version=2), "version 2", auto=True)
        self.check_forged(lambda m: {key: value for key, value in m.items() if key != "data"}, "data")

    def test_texts_that_are_no_manifest(self):
        deep = "[" * 100000 + "]" * 100000
        for text in ("", "{}", "[]", "null", "1", '{"a": ' + deep + "}", '{"version": 1, "version": 1}', '{"data": ' + '{"a":' * 5000 + "1" + "}" * 5001,
                     '{"unknown": 1}', '{"version": "1e400"}', '{"files": ' + "[{}," * 3 + "{}" + "]" * 3 + "}"):
            with self.subTest(text=text[:40]):
                self.restore()
                (self.new / MANIFEST).write_bytes(manifest_bytes(text))
                self.check_refused(MANIFEST)
        for raw in (b"", b"\0" * 100000, b"\xff" * 5000, os.urandom(5000)):
            with self.subTest(raw=raw[:8]):
                self.restore()
                (self.new / MANIFEST).write_bytes(raw)
                self.check_damaged(MANIFEST)

    # Folders.

    def unprivileged(self):
        """Options of a run as nobody; the permissions of folders say nothing to root."""
        if os.getuid() != 0:
            return {}
        for path in (self.shared, self.dir):
            path.chmod(0o755)
        done = self.run_it("--version", user=NOBODY) if os.access(BIN, os.X_OK) else None
        if done is None or done.returncode != 0:
            self.skipTest("nobody may not run the programs here")
        return {"user": NOBODY}

    def test_permissions(self):
        self.restore()
        who = self.unprivileged()
        for name in (MANIFEST, next(name for name in self.files() if name.endswith(".safetensors"))):
            with self.subTest(file=name):
                self.restore()
                for path in (self.folder, *self.folder.rglob("*")):
                    path.chmod(0o777)
                (self.new / name).chmod(0)
                for done in (self.named(**who), self.auto(**who)):
                    self.assertEqual((done.returncode, len(self.lines(done))), (74, 1), done.stderr)
                    self.assertIn(f"{NEW}/{name}': Permission denied", done.stderr)

    def test_folders_that_cannot_be_written(self):
        """Before step 0, in one line."""
        (self.dir / "file").write_text("x")
        cases = {"file": self.dir / "file", "below": self.dir / "file" / "below", "dangling": self.dir / "dangling"}
        cases["dangling"].symlink_to(self.dir / "nowhere" / "at" / "all")
        for name, path in cases.items():
            with self.subTest(case=name):
                done = self.run_it(f"--checkpoint-dir={path}")
                self.assertEqual((done.returncode, len(self.lines(done))), (74, 1), done.stderr)
                self.assertIn(str(path), done.stderr)
        self.assertEqual((self.dir / "file").read_text(), "x")
        who = self.unprivileged()
        (self.dir / "readonly").mkdir(mode=0o555)
        for path in (self.dir / "readonly", self.dir / "readonly" / "below"):
            done = self.run_it(f"--checkpoint-dir={path}", **who)
            self.assertEqual((done.returncode, len(self.lines(done))), (74, 1), done.stderr)
            self.assertIn("Permission denied", done.stderr)

    def test_folders_that_are_links_or_new(self):
        (self.dir / "real").mkdir()
        (self.dir / "link").symlink_to(self.dir / "real")
        for path in ("link", "a/b/c", "with slash/"):
            done = self.run_it(f"--checkpoint-dir={self.dir}/{path}")
            self.assertEqual((done.returncode, done.stderr), (0, ""))
            self.assertEqual(list(read_checkpoints(self.dir / path)), [2])

    def test_a_folder_that_not_all_ranks_see(self):
        """Also where a killed run of one rank left its marks."""
        for rank in (0, 1):
            (self.dir / str(rank) / "here").mkdir(parents=True)
            (self.dir / str(rank) / "here" / ".seen-by-all-ranks").write_text("1 2")
        inner = " ".join(f"'{word}'" for word in self.command("--checkpoint-dir=here"))
        done = subprocess.run([str(BIN / "ftrun"), "--standalone", "--nproc-per-node=2", "/bin/sh", "-c",
                               f"cd '{self.dir}'/$RANK && exec {inner}"], capture_output=True, text=True, timeout=120,
                              env=environment(OMP_NUM_THREADS=1), stdin=subprocess.DEVNULL)
        self.assertEqual(done.returncode, 65, done.stderr)
        self.assertIn("--checkpoint-dir=here: rank 1 does not see what rank 0 wrote there: all ranks need one folder", done.stderr)
        self.assertNotIn("step", done.stdout)
        self.assertEqual([p.name for r in "01" for p in (self.dir / r / "here").iterdir() if p.name.startswith("step")], [])


if __name__ == "__main__":
    unittest.main()
