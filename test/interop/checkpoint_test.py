"""Checkpoints of whole tensors, as they lie there: read by transformers and the safetensors package, and by ourselves again."""
import json
import shutil
import subprocess
import unittest

import numpy as np
import safetensors
import safetensors.torch
import torch
import transformers

import support  # before what it makes findable
import reference

STEPS, SAVE_EVERY, EVAL_STEPS = 6, 3, 2
# Beside the debug presets: grouped heads, biases, a tied head, sizes that no power of two divides.
MODELS = {
    "gpt2": ("gpt2",),
    "llama": ("llama",),
    "qwen2": ("qwen2-0.5b", "--hidden=48", "--layers=3", "--heads=6", "--kv-heads=3", "--ffn=112", "--vocab=256", "--context=64"),
}
BF16 = ("--mixed-precision=bf16", "--master-weights=off")
transformers.logging.disable_progress_bar()


class CheckpointTest(support.InteropTest):
    def compile(self, name, *options):
        mlir, plan = self.folder / f"{name}.mlir", self.folder / f"{name}.bin"
        subprocess.run([support.BIN / "ftc", "model", *MODELS.get(name, (name,)), f"--batch={support.BATCH}", f"--seq={support.SEQ}",
                        "-o", mlir], check=True)
        subprocess.run([support.BIN / "ftc", "compile", mlir, "--strategy=full_shard", "-o", plan, *options], check=True)
        return plan

    def ftexec(self, plan, world, *options, steps=STEPS):
        launch = [support.BIN / "ftrun", "--standalone", f"--nproc-per-node={world}"] if world > 1 else []
        return subprocess.run(launch + support.ftexec(plan, steps, *options), env=support.environment(), capture_output=True, text=True,
                              timeout=300)

    def train(self, name, *options):
        """A run of two ranks that saves twice and evaluates at the same steps: its plan, checkpoints, metrics and weights."""
        plan = self.compile(name, *options)
        checkpoints, metrics, weights = self.folder / "ck", self.folder / "metrics.jsonl", self.folder / "w.safetensors"
        done = self.ftexec(plan, 2, f"--checkpoint-dir={checkpoints}", "--state-dict-type=full", f"--save-every={SAVE_EVERY}",
                           f"--eval-data={support.CORPUS}", f"--eval-every={SAVE_EVERY}", f"--eval-steps={EVAL_STEPS}",
                           f"--metrics={metrics}", f"--save-weights={weights}")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertNotIn("config.json", done.stderr)
        self.assertEqual(sorted(p.name for p in checkpoints.iterdir()), ["step-00000003", "step-00000006"])
        return plan, checkpoints, support.metrics_of(metrics), weights

    def from_pretrained(self, folder, **options):
        """The model of a folder, of which nothing is missing and nothing left over."""
        model, info = transformers.AutoModelForCausalLM.from_pretrained(folder, local_files_only=True, output_loading_info=True, **options)
        for kind in ("missing_keys", "unexpected_keys", "mismatched_keys", "error_msgs"):
            self.assertFalse(info.get(kind), kind)
        return model.eval()

    def mean_loss(self, model, steps, world=2):
        """Over the first steps of both ranks."""
        tokens = np.frombuffer(support.CORPUS.read_bytes(), dtype=np.uint8)
        with torch.no_grad():
            losses = [reference.CausalLM(model).loss(*reference.batch(tokens, support.SEQ, support.BATCH, rank, world, step)).item()
                      for step in range(steps) for rank in range(world)]
        return sum(losses) / len(losses)

    def check_files(self, folder, weights):
        """Every file, by the safetensors package alone: the weights of --save-weights, and the optimizer's states of the same shapes."""
        files = {p.name: safetensors.torch.load_file(p) for p in folder.glob("*.safetensors")}
        self.assertEqual(set(files), {"model.safetensors", "optimizer.safetensors"})
        expected, model = safetensors.torch.load_file(weights), files["model.safetensors"]
        self.assertEqual(set(model), set(expected))
        for name, value in expected.items():
            self.assertEqual(model[name].dtype, value.dtype, name)
            self.assertTrue(torch.equal(model[name].view(torch.uint8), value.view(torch.uint8)), name)
        optimizer = files["optimizer.safetensors"]
        self.assertEqual({k: v.shape for k, v in optimizer.items()},
                         {f"{role}/{k}": v.shape for role in ("exp_avg", "exp_avg_sq") for k, v in expected.items()})
        for name, value in optimizer.items():
            self.assertTrue(torch.isfinite(value).all(), name)
            self.assertFalse(name.startswith("exp_avg_sq") and (value < 0).any(), name)
        listed = {f["name"] for f in json.loads((folder / "manifest.json").read_text())["files"]}
        self.assertEqual(listed, {p.name for p in folder.iterdir()} - {"manifest.json"})

    def check(self, name):
        plan, checkpoints, lines, weights = self.train(name)
        evaluated = {line["step"]: line["eval_loss"] for line in lines if "eval_loss" in line}
        self.assertEqual(len(evaluated), STEPS // SAVE_EVERY)
        theirs = []
        for folder in sorted(checkpoints.iterdir()):
            model = self.from_pretrained(folder)
            self.assertEqual(model.dtype, torch.float32)
            theirs.append(self.mean_loss(model, EVAL_STEPS))
        # The order of evaluation is that of training without shuffling.
        self.assert_close([evaluated[step] for step in sorted(evaluated)], theirs)
        self.assertNotEqual(*theirs)
        last = checkpoints / f"step-{STEPS:08}"
        self.check_files(last, weights)
        self.check_saved_again(last)
        self.check_accepted(plan, last, self.mean_loss(model, 1))

    def check_saved_again(self, folder):
        """What transformers writes of the model that it read is the same model: each key of ours says what it does."""
        model, again = self.from_pretrained(folder), self.folder / "again"
        model.save_pretrained(again)
        ours, theirs = json.loads((folder / "config.json").read_text()), json.loads((again / "config.json").read_text())
        for key in set(ours) & set(theirs):
            self.assertEqual(theirs[key], ours[key], key)
        left = {k for k in set(ours) - set(theirs)}
        self.assertLessEqual(left, {"torch_dtype", "rope_theta", "rope_scaling", "bos_token_id", "eos_token_id", "pad_token_id", "rope_local_base_freq",
                                    "num_experts"})

    def check_accepted(self, plan, folder, loss):
        """The folder is one that --init takes, its config.json compared; the same of another model is not."""
        metrics = self.folder / "init.jsonl"
        done = self.ftexec(plan, 2, f"--init={folder}", f"--metrics={metrics}", steps=1)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertNotIn("config.json", done.stderr + done.stdout)
        self.assert_close([line["loss"] for line in support.metrics_of(metrics)], [loss])
        changed = self.folder / "changed"
        shutil.copytree(folder, changed)
        config = json.loads((changed / "config.json").read_text())
        config["layer_norm_epsilon" if config["model_type"] == "gpt2" else "rms_norm_eps"] = 1e-3
        (changed / "config.json").write_text(json.dumps(config))
        done = self.ftexec(plan, 1, f"--init={changed}", steps=1)
        self.assertEqual(done.returncode, 65, done.stderr)
        self.assertIn("norm_eps", done.stderr)

    def test_gpt2(self):
        self.check("gpt2")

    def test_llama(self):
        self.check("llama")

    def test_qwen2(self):
        self.check("qwen2")

    def test_qwen3(self):
        self.check("qwen3")

    def test_gemma(self):
        for name in ("gemma2", "gemma3"):
            with self.subTest(name):
                self.check(name)
                self.clean()

    def test_experts(self):
        """Those of a layer are one tensor, as in transformers' modules, whose files have one for each expert."""
        for name in ("mixtral", "qwen3_moe"):
            with self.subTest(name):
                plan, checkpoints, lines, _ = self.train(name)
                folder = checkpoints / f"step-{STEPS:08}"
                model = self.from_pretrained(folder)
                last = [line["eval_cross_entropy"] for line in lines if "eval_loss" in line][-1]
                self.assert_close([last], [self.mean_loss(model, EVAL_STEPS)])
                self.check_saved_again(folder)
                done = self.ftexec(plan, 1, f"--init={folder}", steps=1)
                self.assertEqual(done.returncode, 0, done.stderr)
                self.assertNotIn("config.json", done.stderr + done.stdout)
                self.clean()

    def clean(self):
        for path in self.folder.iterdir():
            shutil.rmtree(path) if path.is_dir() else path.unlink()

    def test_weights_of_bf16(self):
        """Without master weights they lie there in bf16, and load as such."""
        plan, checkpoints, _, weights = self.train("llama", *BF16)
        folder = checkpoints / f"step-{STEPS:08}"
        model = self.from_pretrained(folder, dtype="auto")
        self.assertEqual(model.dtype, torch.bfloat16)
        with safetensors.safe_open(folder / "model.safetensors", "pt") as tensors:
            for name, value in model.named_parameters():
                self.assertEqual(tensors.get_slice(name).get_dtype(), "BF16", name)
                self.assertTrue(torch.equal(tensors.get_tensor(name), value), name)
        done = self.ftexec(plan, 1, f"--init={folder}", steps=1)
        self.assertEqual(done.returncode, 0, done.stderr)

    def test_free_transformer(self):
        """It has a config.json of ours: transformers says that it does not know the model, --init compares it."""
        plan, checkpoints, _, weights = self.train("free_transformer")
        folder = checkpoints / f"step-{STEPS:08}"
        self.check_files(folder, weights)
        with self.assertRaisesRegex(ValueError, "free_transformer"):
            transformers.AutoConfig.from_pretrained(folder, local_files_only=True)
        done = self.ftexec(plan, 1, f"--init={folder}", steps=1)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertNotIn("config.json", done.stderr + done.stdout)
        done = self.ftexec(self.compile("llama"), 1, f"--init={folder}", steps=1)
        self.assertEqual(done.returncode, 65, done.stderr)
        self.assertIn("latent_bits", done.stderr)


if __name__ == "__main__":
    unittest.main()
