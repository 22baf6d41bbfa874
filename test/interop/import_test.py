"""`ftc import` of folders that transformers saves: losses, gradients and steps of AdamW are those of its modules, and what is saved loads again."""
import copy
import pathlib
import shutil
import subprocess
import tempfile
import unittest

import numpy as np
import torch
import transformers as tf
from safetensors.torch import save_file
from torch.nn import functional as F

from support import BIN, environment, metrics_of

tf.logging.set_verbosity_error()
tf.logging.disable_progress_bar()

# Sizes that no kernel is made for.
BATCH, SEQ, VOCAB, STEPS, LR = 2, 24, 101, 10, 1e-2
# With 1e-8, steps of weights whose gradients are near zero have the sign of what was rounded: half a last bit of olmo2's weights moves its
# losses by 1e-3, in float64 too. With this no model's move by more than 4e-7.
EPS = 1e-4
SIZES = dict(vocab_size=VOCAB, hidden_size=60, num_hidden_layers=3, intermediate_size=92, max_position_embeddings=48, bos_token_id=None,
             eos_token_id=None, pad_token_id=None)
HEADS = dict(num_attention_heads=6)
GROUPED = dict(HEADS, num_key_value_heads=2)
ROPE = {"rope_type": "default", "rope_theta": 1e4}
ENCODER = dict(vocab_size=VOCAB, hidden_size=60, num_hidden_layers=2, num_attention_heads=4, intermediate_size=92,
               hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0)


def rope(**parameters):
    return {"rope_parameters": ROPE | parameters}


def decoder(config_class, *groups, **more):
    sizes = {}
    for group in groups or (SIZES, GROUPED):
        sizes |= group
    return tf.AutoModelForCausalLM, config_class(**(sizes | more))


LONGROPE = dict(rope_type="longrope", short_factor=[1.0, 1.1, 1.3, 1.7, 2.0], long_factor=[2.0, 3.0, 4.0, 6.0, 9.0])

# Name -> the class that makes the module, and its config.
MODELS = {
    "gpt2": lambda: (tf.AutoModelForCausalLM, tf.GPT2Config(vocab_size=VOCAB, n_positions=40, n_embd=60, n_layer=3, n_head=4, n_inner=92,
                     activation_function="gelu_new", embd_pdrop=0, resid_pdrop=0, attn_pdrop=0, bos_token_id=None, eos_token_id=None)),
    "gpt2_other": lambda: (tf.AutoModelForCausalLM, tf.GPT2Config(
        vocab_size=VOCAB, n_positions=40, n_embd=60, n_layer=3, n_head=4, activation_function="relu", layer_norm_epsilon=1e-3, embd_pdrop=0,
        resid_pdrop=0, attn_pdrop=0, scale_attn_by_inverse_layer_idx=True, tie_word_embeddings=False, bos_token_id=None, eos_token_id=None)),
    "llama": lambda: decoder(tf.LlamaConfig),
    "llama_biases": lambda: decoder(tf.LlamaConfig, attention_bias=True, mlp_bias=True, head_dim=14, hidden_act="gelu", pad_token_id=7,
                                    tie_word_embeddings=True),
    "llama3.1": lambda: decoder(tf.LlamaConfig, **rope(rope_type="llama3", rope_theta=5e5, factor=8.0, low_freq_factor=1.0, high_freq_factor=4.0,
                                                       original_max_position_embeddings=16)),
    "llama_linear": lambda: decoder(tf.LlamaConfig, **rope(rope_type="linear", factor=4.0)),
    "llama_dynamic": lambda: decoder(tf.LlamaConfig, max_position_embeddings=16, **rope(rope_type="dynamic", factor=4.0)),
    "llama_yarn": lambda: decoder(tf.LlamaConfig, **rope(rope_type="yarn", factor=4.0, original_max_position_embeddings=12)),
    "mistral": lambda: decoder(tf.MistralConfig, sliding_window=7),
    "qwen2": lambda: decoder(tf.Qwen2Config, use_sliding_window=True, sliding_window=5, max_window_layers=1),
    "qwen3": lambda: decoder(tf.Qwen3Config, head_dim=14, attention_bias=True),
    "gemma": lambda: decoder(tf.GemmaConfig, head_dim=14, pad_token_id=0),
    "gemma2": lambda: decoder(tf.Gemma2Config, head_dim=14, hidden_activation="gelu", sliding_window=6, query_pre_attn_scalar=20, pad_token_id=0),
    "gemma3": lambda: decoder(tf.Gemma3TextConfig, head_dim=14, sliding_window=6, query_pre_attn_scalar=20, pad_token_id=0,
                              layer_types=["sliding_attention", "full_attention", "sliding_attention"]),
    "phi3": lambda: decoder(tf.Phi3Config, sliding_window=9, **rope(partial_rotary_factor=0.5)),
    "phi3_longrope": lambda: decoder(tf.Phi3Config, original_max_position_embeddings=16, **rope(**LONGROPE)),
    "phi3_equal_heads": lambda: decoder(tf.Phi3Config, num_key_value_heads=None, original_max_position_embeddings=32, **rope(**LONGROPE)),
    "olmo2": lambda: decoder(tf.Olmo2Config, pad_token_id=1),
    "smollm3": lambda: decoder(tf.SmolLM3Config, no_rope_layers=[1, 0, 1]),
    "granite": lambda: decoder(tf.GraniteConfig, embedding_multiplier=12.0, residual_multiplier=0.22, logits_scaling=8.0,
                               attention_multiplier=0.2),
    "pythia": lambda: decoder(tf.GPTNeoXConfig, SIZES, dict(num_attention_heads=3), **rope(partial_rotary_factor=0.25)),
    "gpt_neox": lambda: decoder(tf.GPTNeoXConfig, SIZES, dict(num_attention_heads=3), use_parallel_residual=False, hidden_act="gelu_fast",
                                attention_bias=False, tie_word_embeddings=True, **rope(partial_rotary_factor=0.6)),
    "mixtral": lambda: decoder(tf.MixtralConfig, num_local_experts=5, num_experts_per_tok=2, sliding_window=11),
    "mixtral_loss": lambda: decoder(tf.MixtralConfig, num_local_experts=5, num_experts_per_tok=2, output_router_logits=True,
                                    router_aux_loss_coef=0.3),
    "qwen3_moe": lambda: decoder(tf.Qwen3MoeConfig, head_dim=14, num_experts=5, num_experts_per_tok=3, moe_intermediate_size=36,
                                 norm_topk_prob=True, intermediate_size=36),
    "bert": lambda: (tf.BertForMaskedLM, tf.BertConfig(**ENCODER, max_position_embeddings=40)),
    "bert_classifier": lambda: (tf.BertForSequenceClassification, tf.BertConfig(**ENCODER, max_position_embeddings=40, num_labels=5,
                                                                                hidden_act="gelu_new")),
    "roberta": lambda: (tf.RobertaForMaskedLM, tf.RobertaConfig(**(ENCODER | dict(hidden_act="silu")), max_position_embeddings=33, type_vocab_size=1,
                                                            tie_word_embeddings=False)),
    "roberta_classifier": lambda: (tf.RobertaForSequenceClassification, tf.RobertaConfig(**ENCODER, max_position_embeddings=33, num_labels=4)),
    "vit": lambda: (tf.ViTForImageClassification, tf.ViTConfig(
        hidden_size=60, num_hidden_layers=2, num_attention_heads=4, intermediate_size=92, hidden_dropout_prob=0.0, num_labels=7,
        attention_probs_dropout_prob=0.0, image_size=21, patch_size=7, num_channels=2, qkv_bias=False)),
}


def is_causal(config):
    return config.model_type not in ("bert", "roberta", "vit")


class Data:
    """Examples as ftexec reads them, and a batch of theirs as the loss of a module."""

    def __init__(self, config, folder, batches):
        self.config, count = config, BATCH * batches
        if is_causal(config):
            self.tokens = torch.randint(0, VOCAB, (count * SEQ + 1,))
            self.path = folder / "tokens.bin"
            self.path.write_bytes(self.tokens.numpy().astype(np.uint16).tobytes())
            self.options = ["--data-format=u16"]
            return
        if config.model_type == "vit":
            self.inputs = {"pixels": torch.randn(count, config.num_channels, config.image_size, config.image_size)}
            labels = torch.randint(0, config.num_labels, (count,))
        else:
            lengths = torch.randint(SEQ // 2, SEQ + 1, (count,), dtype=torch.int32)
            tokens = torch.randint(0, VOCAB, (count, SEQ), dtype=torch.int32)
            beyond = torch.arange(SEQ)[None] >= lengths[:, None]
            tokens[beyond] = config.pad_token_id
            self.inputs = {"tokens": tokens, "lengths": lengths,
                           "token_types": torch.randint(0, config.type_vocab_size, (count, SEQ), dtype=torch.int32)}
            if self.classifies():
                labels = torch.randint(0, config.num_labels, (count,))
            else:
                labels = torch.where(beyond | (torch.rand(count, SEQ) < 0.5), -100, torch.randint(0, VOCAB, (count, SEQ)))
        self.inputs["labels"] = labels
        self.path, self.options = folder / "data.safetensors", []
        save_file(self.inputs, self.path)

    def classifies(self):
        return "Classification" in self.config.architectures[0]

    def counted(self, batch):
        """How many targets of a batch count."""
        if is_causal(self.config):
            return BATCH * SEQ
        return int((self.inputs["labels"][batch * BATCH:(batch + 1) * BATCH] >= 0).sum())

    def loss(self, module, batch):
        """Cross entropy of the logits, and what a router adds."""
        first = batch * BATCH
        if is_causal(self.config):
            windows = torch.stack([self.tokens[k * SEQ:(k + 1) * SEQ + 1] for k in range(first, first + BATCH)])
            out = module(input_ids=windows[:, :-1], use_cache=False)
            loss = F.cross_entropy(out.logits.flatten(0, 1), windows[:, 1:].flatten())
            if getattr(self.config, "output_router_logits", False):
                from transformers.models.mixtral.modeling_mixtral import load_balancing_loss_func as balance
                loss = loss + self.config.router_aux_loss_coef * balance(out.router_logits, self.config.num_local_experts,
                                                                         self.config.num_experts_per_tok)
            return loss
        rows = {name: tensor[first:first + BATCH] for name, tensor in self.inputs.items()}
        if "pixels" in rows:
            return F.cross_entropy(module(pixel_values=rows["pixels"]).logits, rows["labels"])
        mask = torch.arange(SEQ)[None] < rows["lengths"][:, None]
        logits = module(input_ids=rows["tokens"].long(), token_type_ids=rows["token_types"].long(), attention_mask=mask.long()).logits
        return F.cross_entropy(logits.flatten(0, -2), rows["labels"].flatten())


def module_of(name, folder):
    """Random weights, none of them what it begins with; saved."""
    torch.manual_seed(5)
    make, config = MODELS[name]()
    module = make.from_config(config) if hasattr(make, "from_config") else make(config)
    with torch.no_grad():
        for parameter in module.parameters():
            parameter.add_(0.05 * torch.randn_like(parameter))
    module.save_pretrained(folder)
    return module.eval()


class FolderTest(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))

    def run_program(self, *command):
        done = subprocess.run([str(part) for part in command], capture_output=True, text=True, env=environment(), timeout=300)
        self.assertEqual(done.returncode, 0, done.stderr[-3000:])
        return done

    def import_model(self, config):
        shape = [] if config.model_type == "vit" else [f"--seq={SEQ}"]
        self.run_program(BIN / "ftc", "import", self.folder / "hf", f"--batch={BATCH}", *shape, "-o", self.folder / "model.mlir")

    def train(self, data, ranks, steps, lr, *settings):
        """Losses of some steps on the data in order; what came of them is saved."""
        plan, log, saved = self.folder / "plan.bin", self.folder / "metrics.jsonl", self.folder / "saved"
        log.unlink(missing_ok=True)
        shutil.rmtree(saved, ignore_errors=True)
        self.run_program(BIN / "ftc", "compile", self.folder / "model.mlir", "--strategy=full_shard", "--clip=0", *settings, "-o", plan)
        launch = [BIN / "ftrun", "--standalone", f"--nproc-per-node={ranks}"] if ranks > 1 else []
        self.run_program(*launch, BIN / "ftexec", plan, f"--data={data.path}", *data.options, f"--steps={steps}", "--shuffle=off", f"--lr={lr}",
                         "--threads=1", "--progress=off", f"--init={self.folder / 'hf'}", f"--metrics={log}", f"--save-hf={saved}")
        return [line["loss"] for line in metrics_of(log)]

    def load(self, module):
        """What was saved last, in a module of the same class: nothing is missing or left over."""
        loaded, info = type(module).from_pretrained(self.folder / "saved", output_loading_info=True)
        self.assertEqual((set(info["missing_keys"]), set(info["unexpected_keys"])), (set(), set()))
        return loaded.eval()

    def check_gradients(self, module, data):
        losses = self.train(data, 1, 1, 1, "--optimizer=sgd", "--weight-decay=0")
        loss = data.loss(module, 0)
        loss.backward()
        self.assertAlmostEqual(losses[0], loss.item(), delta=1e-5 * abs(loss.item()))
        after = dict(self.load(module).named_parameters())
        for key, parameter in module.named_parameters():
            wanted = torch.zeros_like(parameter) if parameter.grad is None else parameter.grad
            error = float((parameter - after[key] - wanted).detach().norm())
            # The updated weights are rounded.
            rounding = 2.0 ** -24 * float((parameter.detach().abs() + wanted.abs()).norm())
            self.assertLessEqual(error, 1e-4 * float(wanted.norm()) + 2 * rounding, f"gradient of {key}")
        module.zero_grad()

    def check_steps(self, module, data, ranks):
        module = copy.deepcopy(module)
        decayed = [p for p in module.parameters() if p.dim() >= 2]
        rest = [p for p in module.parameters() if p.dim() < 2]
        adamw = torch.optim.AdamW([{"params": decayed, "weight_decay": 0.1}, {"params": rest, "weight_decay": 0}], lr=LR, betas=(0.9, 0.95),
                                  eps=EPS)
        wanted = []
        for step in range(STEPS):
            batches = range(step * ranks, (step + 1) * ranks)
            loss = sum(data.loss(module, k) * data.counted(k) for k in batches) / sum(map(data.counted, batches))
            adamw.zero_grad()
            loss.backward()
            adamw.step()
            wanted.append(loss.item())
        losses = self.train(data, ranks, STEPS, LR, "--optimizer=adamw", "--weight-decay=0.1", "--betas=0.9,0.95", f"--eps={EPS}")
        np.testing.assert_allclose(losses, wanted, rtol=1e-5)
        np.testing.assert_allclose(data.loss(self.load(module), 0).item(), data.loss(module, 0).item(), rtol=1e-5)


class ImportTest(FolderTest):
    def check(self, name):
        module = module_of(name, self.folder / "hf")
        data = Data(module.config, self.folder, 3 * STEPS)
        self.import_model(module.config)
        self.check_gradients(module, data)
        for ranks in (1, 3):
            self.check_steps(module, data, ranks)


def add(name):
    setattr(ImportTest, f"test_{name}", lambda self: self.check(name))


for each in MODELS:
    add(each)

if __name__ == "__main__":
    unittest.main()
