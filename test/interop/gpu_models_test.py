"""The PyTorch models that tools/gpu/check compares us with on GPUs: the same functions of the same parameters as our plans."""
import json
import subprocess
import sys
import unittest

import safetensors.torch
import torch

import support

sys.path.append(str(support.ROOT / "tools" / "gpu"))
import artifacts
import torch_models

# Ours: (family, options of ftc model)
DEBUG = {
    "gpt2-debug": ("gpt2", ()),
    "qwen2.5-debug": ("llama", ("qwen2.5-1.5b", "--hidden=64", "--layers=2", "--heads=4", "--kv-heads=2", "--ffn=176",
                                "--vocab=256", "--context=64")),
}
STEPS = 10


def gpt2_name(name):
    for theirs, ours in (("blocks.", "transformer.h."), ("qkv", "attn.c_attn"), ("out", "attn.c_proj"), ("up", "mlp.c_fc"),
                         ("down", "mlp.c_proj"), ("tokens", "transformer.wte"), ("positions", "transformer.wpe")):
        name = name.replace(theirs, ours)
    return name.replace("norm.", "transformer.ln_f.")


def llama_name(name):
    for theirs, ours in (("norm_1", "input_layernorm"), ("norm_2", "post_attention_layernorm"), (".q.", ".self_attn.q_proj."),
                         (".k.", ".self_attn.k_proj."), (".v.", ".self_attn.v_proj."), (".out.", ".self_attn.o_proj."),
                         (".gate.", ".mlp.gate_proj."), (".up.", ".mlp.up_proj."), (".down.", ".mlp.down_proj."),
                         ("tokens", "model.embed_tokens"), ("blocks.", "model.layers.")):
        name = name.replace(theirs, ours)
    return "model." + name if name.startswith("norm.") else name


def from_ours(name, saved):
    """A state_dict of torch_models out of weights that ftexec has saved."""
    model = torch_models.build(name, "cpu", torch.float32)
    state = {}
    for key, value in model.state_dict().items():
        ours = saved[gpt2_name(key) if name.startswith("gpt2") else llama_name(key)]
        # GPT-2's Conv1D has inputs first.
        state[key] = ours.T.contiguous() if "c_" in gpt2_name(key) and name.startswith("gpt2") and ours.dim() == 2 else ours
        assert state[key].shape == value.shape, key
    return state


def llmc(path, text):
    header = torch.zeros(256, dtype=torch.int32)
    header[:3] = torch.tensor([20240520, 1, len(text)])
    path.write_bytes(header.numpy().tobytes() + torch.tensor(list(text), dtype=torch.int32).to(torch.uint16).numpy().tobytes())


class GpuModelsTest(support.InteropTest):
    def ftc(self, *words):
        return subprocess.run([support.BIN / "ftc", *words], check=True, capture_output=True, text=True).stdout

    def parameters(self, *model):
        self.ftc("model", *model, "-o", self.folder / "m.mlir")
        self.ftc("compile", self.folder / "m.mlir", "--strategy=no_shard", "-o", self.folder / "m.bin")
        return json.loads(self.ftc("explain", self.folder / "m.bin", "--json"))["parameters"]

    def test_as_many_parameters(self):
        for name, workload in artifacts.WORKLOADS.items():
            model, preset = workload["model"]
            theirs = sum(p.numel() for p in torch_models.build(name, "meta", torch.float32).parameters())
            self.assertEqual(self.parameters(model, f"--preset={preset}", "--batch=1", "--seq=64"), theirs)

    def losses(self, name, *options):
        out = self.folder / "out.json"
        worker = support.ROOT / "tools" / "gpu" / "torch_worker.py"
        subprocess.run([sys.executable, "-B", worker, name, "--device=cpu", f"--batch={support.BATCH}", f"--seq={support.SEQ}",
                        f"--steps={STEPS}", f"--data={self.folder / 'tokens.bin'}", f"--weights={self.folder / 'init.pt'}",
                        f"--out={out}", *options], check=True, timeout=600)
        return json.loads(out.read_text())["losses"]

    def test_same_losses_from_the_same_weights(self):
        data, init, metrics = self.folder / "tokens.bin", self.folder / "init.safetensors", self.folder / "metrics.jsonl"
        llmc(data, support.CORPUS.read_bytes())
        for name, (family, options) in DEBUG.items():
            with self.subTest(model=name):
                model = options or (family,)
                self.ftc("model", *model, f"--batch={support.BATCH}", f"--seq={support.SEQ}", "-o", self.folder / "m.mlir")
                plan = self.folder / "m.bin"
                self.ftc("compile", self.folder / "m.mlir", "--strategy=no_shard", "-o", plan)
                run = [support.BIN / "ftexec", plan, f"--data={data}", "--shuffle=off", "--lr=3e-4", "--progress=off"]
                subprocess.run([*run, "--steps=0", f"--save-weights={init}"], check=True, capture_output=True)
                torch.save(from_ours(name, safetensors.torch.load_file(init)), self.folder / "init.pt")
                metrics.unlink(missing_ok=True)
                subprocess.run([*run, f"--steps={STEPS}", f"--init={init}", f"--metrics={metrics}"], check=True,
                               capture_output=True)
                ours = [line["loss"] for line in support.metrics_of(metrics)]
                theirs = self.losses(name, "--variant=eager", "--precision=fp32")
                # Ten steps apart by roundings of fp32; Adam's division makes more of them than one.
                for a, b in zip(ours, theirs, strict=True):
                    self.assertLess(abs(a - b) / b, 2e-5)
                # bf16 rounds to 3 digits, the mean over 256 tokens less.
                for a, b in zip(ours, self.losses(name, "--variant=eager", "--precision=bf16"), strict=True):
                    self.assertLess(abs(a - b) / b, 2e-3)


if __name__ == "__main__":
    unittest.main()
