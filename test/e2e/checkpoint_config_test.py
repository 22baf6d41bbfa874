"""The config.json of checkpoints: where there is one, what it belongs to, and what is said where it cannot be written."""

import json
import pathlib
import unittest

from harness import MODELS, EndToEnd, run


class CheckpointConfig(EndToEnd):
    def save(self, plan, *options, name="ck"):
        """A run of one step that ends with a checkpoint: its folder, and what was said."""
        done = self.check("ftexec", plan, f"--data={self.text}", "--steps=1", "--progress=off", f"--checkpoint-dir={self.dir / name}",
                          *options)
        return self.dir / name / "step-00000001", done

    def init(self, plan, folder):
        return run("ftexec", plan, f"--data={self.text}", "--steps=1", "--progress=off", f"--init={folder}")

    def test_whole_tensors_have_one_that_init_takes(self):
        for model in MODELS:
            with self.subTest(model=model):
                plan = self.plan(model, "full_shard")
                folder, done = self.save(plan, name=model)
                self.assertEqual(done.stderr, "")
                config = json.loads((folder / "config.json").read_text())
                self.assertEqual((config["model_type"], config["vocab_size"], config["dtype"]), (model, 256, "float32"))
                listed = {f["name"]: f["bytes"] for f in json.loads((folder / "manifest.json").read_text())["files"]}
                self.assertEqual(listed["config.json"], (folder / "config.json").stat().st_size)
                done = self.init(plan, folder)
                self.assertEqual(done.returncode, 0, done.stderr)
                self.assertNotIn("config.json", done.stdout + done.stderr)

    def test_it_belongs_to_the_checkpoint(self):
        plan = self.plan("llama", "full_shard")
        folder, _ = self.save(plan)
        config = folder / "config.json"
        config.write_text(config.read_text().replace('"vocab_size": 256', '"vocab_size": 255'))
        done = run("ftexec", plan, f"--data={self.text}", "--steps=2", "--progress=off", f"--resume={folder}")
        self.assertNotEqual(done.returncode, 0)
        self.assertEqual(len(done.stderr.splitlines()), 1, done.stderr)
        self.assertIn("config.json", done.stderr)

    def test_parts_of_tensors_have_none(self):
        for kind in ("sharded", "local"):
            folder, done = self.save(self.plan("llama", "full_shard"), f"--state-dict-type={kind}", name=kind)
            self.assertEqual((done.stderr, (folder / "config.json").exists()), ("", False))

    def edited(self, change):
        """A plan of the debug Llama whose text was changed."""
        source, target = self.dir / "edited.mlir", self.dir / "edited.bin"
        self.check("ftc", "model", "llama", "-o", source)
        text = source.read_text()
        self.assertNotEqual(change(text), text)
        source.write_text(change(text))
        self.check("ftc", "compile", source, "--strategy=full_shard", "-o", target)
        return target

    def check_without(self, plan, why):
        """The checkpoint is whole all the same, and one line says what it lacks."""
        folder, done = self.save(plan)
        self.assertEqual(done.stderr, f"ftexec: checkpoints have no config.json: {why}\n")
        self.assertEqual({p.name for p in pathlib.Path(folder).iterdir()},
                         {"manifest.json", "model.safetensors", "optimizer.safetensors"})
        done = self.check("ftexec", plan, f"--data={self.text}", "--steps=2", "--progress=off", f"--resume={folder}")
        self.assertIn("resumed from", done.stdout)

    def test_facts_that_the_family_cannot_say(self):
        self.check_without(self.edited(lambda text: text.replace('model_type = "llama"', 'model_type = "llama", qk_norm = "head"')),
                           'the config.json of a llama cannot say that qk_norm is "head"')

    def test_a_family_that_is_not_known(self):
        self.check_without(self.edited(lambda text: text.replace('model_type = "llama"', 'model_type = "mine"')),
                           "the keys of the model_type 'mine' are not known")

    def test_a_plan_without_facts(self):
        def strip(text):
            begin = text.index("ft.facts = {")
            end = text.index("}", begin) + 1
            end += text[end:].startswith(", ") * 2
            return text[:begin] + text[end:]
        self.check_without(self.edited(strip), "the plan does not say the facts of its model (ft.facts)")


if __name__ == "__main__":
    unittest.main()
