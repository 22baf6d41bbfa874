"""--save-hf: a folder that from_pretrained would load (test/interop has it do so), whatever the strategy, and what it is told of types, sizes and tokenizers."""

import json
import unittest

from harness import BIN, SOURCE, EndToEnd, run
from init_test import read


class SaveFolder(EndToEnd):
    def origin(self):
        """A folder of transformers with what no fact says."""
        folder = self.dir / "origin"
        folder.mkdir()
        config = json.loads((SOURCE / "test" / "hf_configs" / "v5" / "llama.json").read_text())
        (folder / "config.json").write_text(json.dumps(config | {"eos_token_id": [3, 5], "torch_dtype": "bfloat16", "_name_or_path": "me"}))
        self.train(self.plan("llama", "no_shard"), 1, f"--save-weights={folder / 'model.safetensors'}", steps=0)
        for name in ("tokenizer.json", "special_tokens_map.json", "README.md"):
            (folder / name).write_text(name)
        return folder

    def saved(self, plan, world, *options, name="saved", steps=2):
        folder = self.dir / name
        done = self.check("ftrun", f"--nproc-per-node={world}", "--standalone", BIN / "ftexec", plan, f"--data={self.text}",
                          f"--steps={steps}", "--shuffle=off", "--progress=off", f"--save-hf={folder}", *options)
        return folder, done

    def test_the_same_whatever_the_strategy(self):
        """One run's weights are those of --save-weights, and a run starts from the folder."""
        wanted = None
        for strategy, world in (("no_shard", 2), ("full_shard", 2), ("zero1", 2)):
            with self.subTest(strategy=strategy):
                plan, weights = self.plan("llama", strategy), self.dir / "weights.safetensors"
                folder, done = self.saved(plan, world, f"--save-weights={weights}", name=strategy)
                tensors = read(folder / "model.safetensors")
                self.assertEqual(tensors, read(weights))
                wanted = wanted or tensors
                self.assertEqual(tensors, wanted)
                self.assertIn("there is no tokenizer beside the weights: --tokenizer=DIR copies one", done.stdout)
        again, _ = self.saved(self.plan("llama", "full_shard"), 2, f"--init={folder}", name="again", steps=0)
        self.assertEqual(read(again / "model.safetensors"), wanted)

    def test_config_and_tokenizer_come_from_where_it_started(self):
        origin = self.origin()
        folder, done = self.saved(self.plan("llama", "full_shard"), 2, f"--init={origin}")
        self.assertNotIn("tokenizer", done.stdout)
        self.assertEqual({path.name for path in folder.iterdir()},
                         {"model.safetensors", "config.json", "tokenizer.json", "special_tokens_map.json"})
        config = json.loads((folder / "config.json").read_text())
        self.assertEqual((config["eos_token_id"], config["dtype"], config["torch_dtype"]), ([3, 5], "float32", "float32"))
        self.assertNotIn("_name_or_path", config)
        other = self.dir / "tokenizer"
        other.mkdir()
        (other / "vocab.txt").write_text("a")
        folder, _ = self.saved(self.plan("llama", "full_shard"), 1, f"--init={origin}", f"--tokenizer={other}", name="other")
        self.assertEqual({path.name for path in folder.iterdir()}, {"model.safetensors", "config.json", "vocab.txt"})

    def test_types_and_several_files(self):
        plan = self.plan("gpt2", "full_shard")
        whole, _ = self.saved(plan, 2, name="whole")
        folder, _ = self.saved(plan, 2, "--save-dtype=bf16", "--max-shard-size=100KB")
        index = json.loads((folder / "model.safetensors.index.json").read_text())
        files = sorted(path.name for path in folder.glob("model-*.safetensors"))
        self.assertGreater(len(files), 2)
        self.assertEqual(files[0], f"model-00001-of-{len(files):05}.safetensors")
        tensors, total = {}, 0
        for name in files:
            part = read(folder / name)
            total += sum(len(values) for _, values in part.values())
            self.assertEqual({index["weight_map"][tensor] for tensor in part}, {name})
            tensors |= part
        self.assertEqual(index["metadata"]["total_size"], total)
        full = read(whole / "model.safetensors")
        self.assertEqual({name: shape for name, (shape, _) in tensors.items()}, {name: shape for name, (shape, _) in full.items()})
        self.assertEqual(2 * total, sum(len(values) for _, values in full.values()))
        self.assertEqual(json.loads((folder / "config.json").read_text())["dtype"], "bfloat16")

    def test_experts_lie_as_in_files_of_transformers(self):
        """As ftckpt converts a checkpoint of the same run."""
        checkpoints, converted = self.dir / "checkpoints", self.dir / "converted"
        folder, _ = self.saved(self.plan("mixtral", "full_shard"), 2, f"--checkpoint-dir={checkpoints}")
        self.check("ftckpt", "convert", checkpoints, converted, "--to=hf")
        tensors = read(folder / "model.safetensors")
        self.assertEqual(tensors, read(converted / "model.safetensors"))
        self.assertEqual(tensors["model.layers.1.block_sparse_moe.experts.3.w1.weight"][0], [96, 64])
        self.assertFalse([name for name in tensors if "gate_up_proj" in name])
        again, _ = self.saved(self.plan("mixtral", "no_shard"), 1, f"--init={folder}", name="again", steps=0)
        self.assertEqual(read(again / "model.safetensors"), tensors)

    def test_what_is_there_is_not_replaced(self):
        folder = self.dir / "there"
        folder.mkdir()
        (folder / "mine").write_text("mine")
        done = run("ftexec", self.plan("llama", "no_shard"), f"--data={self.text}", "--steps=1", f"--save-hf={folder}", "--progress=off")
        self.assertEqual((done.returncode, len(done.stderr.splitlines())), (65, 1), done.stderr)
        self.assertIn("is there already", done.stderr)
        self.assertEqual([path.name for path in folder.iterdir()], ["mine"])
        done = run("ftexec", self.plan("llama", "no_shard"), f"--data={self.text}", "--steps=1", "--save-dtype=bf16", "--progress=off")
        self.assertEqual(done.returncode, 2)
        self.assertIn("--save-hf", done.stderr)


if __name__ == "__main__":
    unittest.main()
