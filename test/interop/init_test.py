"""--init of folders that transformers saves now: taken where its model is ours, refused where it computes something else."""
import functools
import re
import subprocess
import sys
import unittest

import numpy as np
import torch
import transformers
from transformers.models.gemma2 import modeling_gemma2 as gemma2

import support  # before what it makes findable
import reference

SIZES = dict(vocab_size=256, hidden_size=64, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2,
             intermediate_size=176, max_position_embeddings=64)
QWEN2 = ("qwen2-0.5b", "--hidden=64", "--layers=2", "--heads=4", "--kv-heads=2", "--ffn=176", "--vocab=256", "--context=64")
DEFAULT_ROPE = {"rope_type": "default", "rope_theta": 1e4}
transformers.logging.disable_progress_bar()

# Gemma 2's attention for other models; the scores of these reach about 0.9.
CAPPED, CAP = "capped", 0.5
transformers.AttentionInterface.register(CAPPED, functools.partial(gemma2.eager_attention_forward, softcap=CAP))
transformers.AttentionMaskInterface.register(CAPPED, transformers.masking_utils.eager_mask)


def attending(text, form, facts):
    """A model with this said of its attention, in its last layer alone where the facts name it; without `facts` none are said."""
    layer = r"model\.layers\.1" if facts and "sliding_layers" in facts else ""
    text = re.sub(rf'(ft\.attention .* causal)( {{layer = "{layer})', rf"\1 {form}\2", text)
    return re.sub(r'model_type = "\w+"', facts, text, count=1) if facts else re.sub(r"ft\.facts = {[^}]*}, ", "", text, count=1)


class InitTest(support.InteropTest):
    def compile(self, *model, edit=lambda text: text):
        mlir, plan = self.folder / "m.mlir", self.folder / "m.bin"
        subprocess.run([support.BIN / "ftc", "model", *model, f"--batch={support.BATCH}", f"--seq={support.SEQ}", "-o", mlir], check=True)
        mlir.write_text(edit(mlir.read_text()))
        subprocess.run([support.BIN / "ftc", "compile", mlir, "--strategy=full_shard", "-o", plan], check=True)
        return plan

    def save(self, config):
        torch.manual_seed(3)
        model = transformers.AutoModelForCausalLM.from_config(config)
        with torch.no_grad():  # biases and norms too, so that leaving one out is seen in the loss
            for parameter in model.parameters():
                parameter.add_(torch.randn_like(parameter) * 0.05)
        model.save_pretrained(self.folder / "init")
        return model.eval()

    def init(self, plan):
        metrics = self.folder / "metrics.jsonl"
        metrics.unlink(missing_ok=True)
        done = subprocess.run(support.ftexec(plan, 1, f"--init={self.folder / 'init'}", f"--metrics={metrics}"),
                              env=support.environment(), capture_output=True, text=True, timeout=300)
        return done, support.metrics_of(metrics)

    def loss_of(self, model):
        tokens = np.frombuffer(support.CORPUS.read_bytes(), dtype=np.uint8)
        return reference.CausalLM(model).loss(*reference.batch(tokens, support.SEQ, support.BATCH, 0, 1, 0))

    def loss(self, model):
        with torch.no_grad():
            return self.loss_of(model).item()

    def test_the_files_of_the_other_tests_are_what_transformers_writes(self):
        subprocess.run([sys.executable, "-B", support.ROOT / "test" / "hf_configs" / "make_configs.py", "--check"], check=True, timeout=300)

    def test_the_same_model(self):
        """What is taken without a word computes the same loss."""
        llama = ("llama",)
        for ours, config in (
                (llama, transformers.LlamaConfig(**SIZES, rms_norm_eps=1e-5)),
                (llama, transformers.MistralConfig(**SIZES, rms_norm_eps=1e-5)),
                (llama, transformers.MistralConfig(**SIZES, rms_norm_eps=1e-5, sliding_window=None)),
                (QWEN2, transformers.Qwen2Config(**SIZES, tie_word_embeddings=True,
                                                 rope_parameters={"rope_type": "default", "rope_theta": 1e6})),
                (("gpt2",), transformers.GPT2Config(vocab_size=256, n_positions=64, n_embd=64, n_layer=2, n_head=4))):
            with self.subTest(config=type(config).__name__, window=getattr(config, "sliding_window", None)):
                plan, model = self.compile(*ours), self.save(config)
                done, lines = self.init(plan)
                self.assertEqual(done.returncode, 0, done.stderr)
                self.assert_close([line["loss"] for line in lines], [self.loss(model)])

    def test_forms_of_attention(self):
        """Windows, scales and caps, said of the graph of a model that is otherwise ours: transformers' loss and gradient norm."""
        llama = dict(SIZES, rms_norm_eps=1e-5)
        capped = transformers.LlamaConfig(**llama)
        capped._attn_implementation = CAPPED
        for model, form, facts, config in (
                (("llama",), "window 16", 'model_type = "mistral", sliding_window = 16 : i64',
                 transformers.MistralConfig(**llama, sliding_window=16)),
                (QWEN2, "window 7", 'model_type = "qwen2", sliding_window = 7 : i64, sliding_layers = array<i64: 1>',
                 transformers.Qwen2Config(**SIZES, tie_word_embeddings=True, use_sliding_window=True, sliding_window=7, max_window_layers=1,
                                          rope_parameters={"rope_type": "default", "rope_theta": 1e6})),
                (("llama",), "scale 0.125", 'model_type = "granite", attention_scale = 0.125',
                 transformers.GraniteConfig(**llama, attention_multiplier=0.125)),
                (("llama",), f"softcap {CAP}", None, capped)):  # no facts: no family has a cap and is ours otherwise
            with self.subTest(form=form):
                plan, model = self.compile(*model, edit=lambda text: attending(text, form, facts)), self.save(config)
                done, lines = self.init(plan)
                self.assertEqual(done.returncode, 0, done.stderr)
                loss = self.loss_of(model)
                loss.backward()
                norm = torch.nn.utils.get_total_norm([parameter.grad for parameter in model.parameters()]).item()
                self.assert_close([lines[0]["loss"], lines[0]["grad_norm"]], [loss.item(), norm])

    def test_another_model(self):
        """Each computes another loss from the same tensors, which is why it is refused."""
        llama = dict(SIZES, rms_norm_eps=1e-5)
        base = self.loss(self.save(transformers.LlamaConfig(**llama)))
        plan = self.compile("llama")
        for word, config in (
                ("rope_theta", transformers.LlamaConfig(**llama, rope_parameters=DEFAULT_ROPE | {"rope_theta": 5e5})),
                ("rope_type", transformers.LlamaConfig(**llama, rope_parameters=DEFAULT_ROPE | {"rope_type": "linear", "factor": 4.0})),
                ("rope_type", transformers.LlamaConfig(**llama, rope_parameters={
                    "rope_type": "llama3", "rope_theta": 1e4, "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
                    "original_max_position_embeddings": 32})),
                ("activation", transformers.LlamaConfig(**llama, hidden_act="gelu")),
                ("norm_eps", transformers.LlamaConfig(**(llama | dict(rms_norm_eps=1e-2)))),
                ("sliding_window", transformers.MistralConfig(**llama, sliding_window=16)),
                ("norm is", transformers.GemmaConfig(**llama, head_dim=16, tie_word_embeddings=False)),
                ("logit_multiplier", transformers.GraniteConfig(**llama, logits_scaling=8.0, attention_multiplier=0.25)),
                ("layers_without_rope", transformers.SmolLM3Config(**llama, no_rope_layers=[1, 0], pad_token_id=0,
                                                                   tie_word_embeddings=False, rope_parameters=DEFAULT_ROPE))):
            with self.subTest(config=type(config).__name__, word=word):
                theirs = self.loss(self.save(config))
                self.assertGreater(abs(theirs - base) / base, 2e-5)  # one model agrees within 1e-5
                done, lines = self.init(plan)
                self.assertEqual((done.returncode, lines), (65, []), done.stderr)
                self.assertIn(word, done.stderr)
                self.assertEqual(len(done.stderr.splitlines()), 1)

    def test_biases_norms_and_heads_that_the_model_lacks(self):
        llama = dict(SIZES, rms_norm_eps=1e-5)
        plan = self.compile("llama")
        for words, config in (
                (("qkv_bias", "mlp_bias", "model.layers.*.self_attn.q_proj.bias (2: 0 to 1)"),
                 transformers.LlamaConfig(**llama, attention_bias=True, mlp_bias=True)),
                (("qk_norm", "model.layers.*.self_attn.q_norm.weight"), transformers.Qwen3Config(**llama, head_dim=16)),
                (("head_size", "self_attn"), transformers.LlamaConfig(**llama, head_dim=32)),
                (("tied_head", "lm_head.weight"), transformers.LlamaConfig(**llama, tie_word_embeddings=True))):
            with self.subTest(words=words):
                self.save(config)
                done, _ = self.init(plan)
                self.assertEqual(done.returncode, 65, done.stderr)
                for word in words:
                    self.assertIn(word, done.stderr)


if __name__ == "__main__":
    unittest.main()
