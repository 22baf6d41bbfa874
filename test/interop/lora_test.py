"""Low-rank adapters against PEFT: where they start, what they learn, and that PEFT loads them and computes the same."""
import copy
import json
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

import numpy as np
import peft
import torch
import transformers as tf
from safetensors.torch import load_file, save_file

from support import BIN, LEVEL, ROOT, environment, metrics_of

sys.path.insert(0, str(ROOT / "tools" / "python"))
import ft  # noqa: E402

tf.logging.set_verbosity_error()

BATCH, SEQ, VOCAB, CLASSES, STEPS, LR, CLIP, EPS = 2, 20, 83, 3, 4, 1e-2, 0.5, 1e-4
SIZES = dict(vocab_size=VOCAB, hidden_size=48, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2, intermediate_size=56,
             max_position_embeddings=SEQ, bos_token_id=None, eos_token_id=None, pad_token_id=None)
BERT = dict(vocab_size=VOCAB, hidden_size=48, num_hidden_layers=2, num_attention_heads=4, intermediate_size=64, max_position_embeddings=SEQ,
            hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0)
# The model, and what --lora says of targets.
CAUSAL = {
    "gpt2": (lambda: tf.GPT2Config(vocab_size=VOCAB, n_embd=48, n_layer=2, n_head=4, n_positions=SEQ, resid_pdrop=0, embd_pdrop=0, attn_pdrop=0), "c_attn,c_proj,c_fc"),
    "llama": (lambda: tf.LlamaConfig(**SIZES), "all-linear"),
    "qwen2": (lambda: tf.Qwen2Config(**SIZES), "q_proj,v_proj"),
    "gemma2": (lambda: tf.Gemma2Config(**SIZES | dict(pad_token_id=0), head_dim=12, sliding_window=8), "*self_attn*,layers.1.mlp.down_proj"),
    "phi3": (lambda: tf.Phi3Config(**SIZES | dict(pad_token_id=0)), "qkv_proj,gate_up_proj"),
    "gpt_neox": (lambda: tf.GPTNeoXConfig(vocab_size=VOCAB, hidden_size=48, num_hidden_layers=2, num_attention_heads=4, intermediate_size=64,
                                          max_position_embeddings=SEQ, hidden_dropout=0, attention_dropout=0), "query_key_value,dense"),
    "mixtral": (lambda: tf.MixtralConfig(**SIZES, num_local_experts=3, num_experts_per_tok=2), "all-linear"),
    "qwen3_moe": (lambda: tf.Qwen3MoeConfig(**SIZES, head_dim=14, num_experts=3, num_experts_per_tok=2, moe_intermediate_size=36), "all-linear"),
}


EXPERTS = ("mixtral", "qwen3_moe")


def randomized(module, seed=3):
    torch.manual_seed(seed)
    with torch.no_grad():
        for parameter in module.parameters():
            parameter.add_(0.02 * torch.randn_like(parameter))
    return module.eval()


class Adapters(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))

    def program(self, *command, ranks=1, status=0):
        launch = [BIN / "ftrun", "--standalone", f"--nproc-per-node={ranks}"] if ranks > 1 else []
        done = subprocess.run([str(part) for part in [*launch, BIN / command[0], *command[1:]]], capture_output=True, text=True, env=environment(), timeout=300)
        self.assertEqual(done.returncode, status, done.stderr[-3000:])
        return done

    def model(self, module):
        module.save_pretrained(self.folder / "hf")
        self.program("ftc", "import", self.folder / "hf", f"--batch={BATCH}", f"--seq={SEQ}", "-o", self.folder / "model.mlir")

    def compiled(self, lora, *settings, strategy="full_shard"):
        plan = self.folder / "plan.bin"
        self.program("ftc", "compile", self.folder / "model.mlir", f"--strategy={strategy}", f"--clip={CLIP}", "--optimizer=adamw", "--weight-decay=0.1",
                     "--betas=0.9,0.95", f"--eps={EPS}", f"--lora={lora}", f"--code={LEVEL}", *settings, "-o", plan)
        return plan

    def train(self, plan, *options, ranks=1, steps=STEPS, lr=LR, init="hf"):
        log = self.folder / "metrics.jsonl"
        log.unlink(missing_ok=True)
        done = self.program("ftexec", plan, f"--data={self.folder / 'data.safetensors'}", f"--steps={steps}", "--shuffle=off", f"--lr={lr}", "--threads=1",
                            "--progress=off", f"--metrics={log}", f"--init={self.folder / init}", *options, ranks=ranks)
        return metrics_of(log), done

    def explained(self, plan, *options):
        return json.loads(self.program("ftc", "explain", plan, "--json", *options).stdout)

    def tokens(self, count):
        torch.manual_seed(5)
        tokens = torch.randint(0, VOCAB, (count, SEQ + 1), dtype=torch.int32)
        save_file({"tokens": tokens[:, :-1].contiguous(), "targets": tokens[:, 1:].contiguous()}, self.folder / "data.safetensors")
        return tokens.long()

    def adapters(self, module, **config):
        """PEFT's own around a copy of the module, both factors random."""
        wrapped = peft.get_peft_model(copy.deepcopy(module), peft.LoraConfig(**config)).eval()
        torch.manual_seed(7)
        with torch.no_grad():
            for name, parameter in wrapped.named_parameters():
                if "lora_" in name:
                    parameter.copy_(0.1 * torch.randn_like(parameter))
        wrapped.save_pretrained(self.folder / "start")
        return wrapped

    def reference(self, wrapped, losses):
        """(loss, norm of the gradient) of each step of AdamW on what PEFT leaves trainable."""
        parameters = [p for p in wrapped.parameters() if p.requires_grad]
        groups = [dict(params=[p for p in parameters if p.dim() > 1]), dict(params=[p for p in parameters if p.dim() == 1], weight_decay=0)]
        adamw = torch.optim.AdamW([g for g in groups if g["params"]], lr=LR, betas=(0.9, 0.95), eps=EPS, weight_decay=0.1)
        wanted = []
        for loss_of in losses:
            loss = loss_of(wrapped)
            adamw.zero_grad()
            loss.backward()
            norm = torch.nn.utils.clip_grad_norm_(parameters, CLIP)
            adamw.step()
            wanted.append((loss.item(), norm.item()))
        return wanted

    def check_steps(self, lines, wanted):
        np.testing.assert_allclose([(line["loss"], line["grad_norm"]) for line in lines], wanted, rtol=1e-4)

    def loaded(self, module, folder):
        return peft.PeftModel.from_pretrained(copy.deepcopy(module), self.folder / folder).eval()

    def check_logits(self, ours, theirs, inputs, tolerance=2e-4):
        with torch.no_grad():
            ours, theirs = ours(**inputs).logits, theirs(**inputs).logits
        self.assertLess((ours - theirs).abs().max().item(), tolerance * theirs.abs().max().item())


def causal_loss(tokens, rows):
    def loss(module):
        logits = module(input_ids=tokens[rows, :-1]).logits
        return torch.nn.functional.cross_entropy(logits.flatten(0, 1), tokens[rows, 1:].flatten())
    return loss


class OwnModel(torch.nn.Module):
    """A module of one's own, of which nothing is to be trained."""

    def __init__(self, width=48):
        super().__init__()
        nn = torch.nn
        self.embed, self.norm, self.head = nn.Embedding(VOCAB, width), nn.LayerNorm(width), nn.Linear(width, VOCAB)
        self.blocks = nn.ModuleList(nn.ModuleDict({"up": nn.Linear(width, 2 * width), "down": nn.Linear(2 * width, width, bias=False)}) for _ in range(2))
        self.requires_grad_(False)

    def forward(self, tokens, targets):
        x = self.embed(tokens)
        for block in self.blocks:
            x = x + block["down"](torch.relu(block["up"](self.norm(x))) ** 2)
        return torch.nn.functional.cross_entropy(self.head(x).flatten(0, 1), targets.flatten().long())


class LoraTest(Adapters):
    def check_family(self, name, ranks, micro, strategy):
        config, targets = CAUSAL[name]
        module = randomized(tf.AutoModelForCausalLM.from_config(config(), attn_implementation="eager"))
        self.model(module)
        plan = self.compiled(f"r:4,alpha:6,targets:{targets}", f"--micro-steps={micro}", strategy=strategy)
        size = BATCH * ranks * micro
        tokens = self.tokens(size * STEPS)
        # PEFT takes globs as regular expressions.
        words = "all-linear" if targets == "all-linear" else targets.split(",")
        if name in EXPERTS:  # for which PEFT's all-linear names factors of experts, too
            words = ["q_proj", "k_proj", "v_proj", "o_proj"]
        if name == "gemma2":
            words = r".*self_attn\.[qkvo]_proj|.*layers\.1\.mlp\.down_proj"
        wrapped = self.adapters(module, r=4, lora_alpha=6, target_modules=words, task_type="CAUSAL_LM", fan_in_fan_out=name == "gpt2")
        lines, _ = self.train(plan, f"--adapter={self.folder / 'start'}", f"--save-hf={self.folder / 'tuned'}", ranks=ranks)
        wanted = self.reference(wrapped, [causal_loss(tokens, slice(s * size, (s + 1) * size)) for s in range(STEPS)])
        self.check_steps(lines, wanted)
        self.assertEqual(sorted(path.name for path in (self.folder / "tuned").iterdir() if path.suffix != ".jinja" and "generation" not in path.name),
                         ["adapter_config.json", "adapter_model.safetensors"])
        ours = load_file(self.folder / "tuned" / "adapter_model.safetensors")
        self.assertEqual(sorted(ours), sorted(peft.get_peft_model_state_dict(wrapped)))
        self.check_logits(self.loaded(module, "tuned"), wrapped, {"input_ids": tokens[:2, :-1]})
        return module, wrapped, tokens

    def test_gpt2(self):
        self.check_family("gpt2", 1, 1, "no_shard")
        config = json.loads((self.folder / "tuned" / "adapter_config.json").read_text())
        self.assertEqual((config["fan_in_fan_out"], config["task_type"], sorted(config["target_modules"])), (True, "CAUSAL_LM", ["c_attn", "c_fc", "c_proj"]))

    def test_llama(self):
        self.check_family("llama", 3, 2, "full_shard")

    def test_qwen2(self):
        self.check_family("qwen2", 2, 1, "zero1")

    def test_gemma2(self):
        self.check_family("gemma2", 1, 2, "shard_grad_op")

    def test_phi3(self):
        self.check_family("phi3", 2, 1, "full_shard")

    def test_gpt_neox(self):
        self.check_family("gpt_neox", 1, 1, "full_shard")

    def test_experts(self):
        for name in EXPERTS:
            with self.subTest(name):
                for folder in ("hf", "start", "tuned"):
                    shutil.rmtree(self.folder / folder, ignore_errors=True)
                module, _, tokens = self.check_family(name, 1, 1, "full_shard")
                tuned = self.loaded(module, "tuned")  # PEFT finds a place for all of them
                self.assertEqual(tuned.peft_config["default"].r, 4)
                with torch.no_grad():
                    ours, base = (causal_loss(tokens, slice(0, BATCH))(each).item() for each in (tuned, module))
                self.assertNotAlmostEqual(ours, base, delta=1e-4)

    def test_a_classifier_whose_head_is_trained_whole(self):
        module = randomized(tf.BertForSequenceClassification(tf.BertConfig(**BERT, num_labels=CLASSES)))
        self.model(module)
        plan = self.compiled("r:3,alpha:5,targets:query,value,rslora:on,modules_to_save:classifier")
        torch.manual_seed(5)
        count = BATCH * STEPS
        tokens, labels = torch.randint(0, VOCAB, (count, SEQ), dtype=torch.int32), torch.randint(0, CLASSES, (count,))
        save_file({"tokens": tokens, "token_types": torch.zeros_like(tokens), "lengths": torch.full((count,), SEQ, dtype=torch.int32), "labels": labels},
                  self.folder / "data.safetensors")
        wrapped = self.adapters(module, r=3, lora_alpha=5, target_modules=["query", "value"], use_rslora=True, task_type="SEQ_CLS", modules_to_save=["classifier"])
        lines, _ = self.train(plan, f"--adapter={self.folder / 'start'}", f"--save-hf={self.folder / 'tuned'}")

        def loss_of(step):
            rows = slice(step * BATCH, (step + 1) * BATCH)
            return lambda m: m(input_ids=tokens[rows].long(), labels=labels[rows].long()).loss
        self.check_steps(lines, self.reference(wrapped, [loss_of(step) for step in range(STEPS)]))
        # A base without the head is trained, and not evaluated.
        headless = {name: tensor for name, tensor in load_file(self.folder / "hf" / "model.safetensors").items() if "classifier" not in name}
        save_file(headless, self.folder / "headless.safetensors")
        _, done = self.train(plan, init="headless.safetensors")
        self.assertIn("classifier.weight", done.stdout + done.stderr)
        refused = self.program("ftexec", plan, "--evaluate", f"--data={self.folder / 'data.safetensors'}", f"--init={self.folder / 'headless.safetensors'}", status=65)
        self.assertIn("does not have", refused.stderr)
        self.assertEqual(sorted(load_file(self.folder / "tuned" / "adapter_model.safetensors")), sorted(peft.get_peft_model_state_dict(wrapped)))
        self.check_logits(self.loaded(module, "tuned"), wrapped, {"input_ids": tokens[:2].long()})

    def test_a_norm_that_is_trained_whole(self):
        """PEFT takes a name for every module that ends so: "norm" would be all three of a layer."""
        module = self.llama()
        tokens = self.tokens(BATCH * STEPS)
        plan = self.compiled("r:2,alpha:2,targets:q_proj,modules_to_save:norm")
        self.train(plan, f"--save-hf={self.folder / 'tuned'}")
        tuned = self.loaded(module, "tuned")
        saved = load_file(self.folder / "tuned" / "adapter_model.safetensors")["base_model.model.model.norm.weight"]
        self.assertTrue(torch.equal(tuned.base_model.model.model.norm.modules_to_save["default"].weight, saved))
        self.assertFalse(torch.equal(saved, module.model.norm.weight))
        # Adapters that go on from there, and the loss of both.
        lines, _ = self.train(plan, f"--adapter={self.folder / 'tuned'}", lr=0, steps=1)
        with torch.no_grad():
            wanted = causal_loss(tokens, slice(0, BATCH))(tuned).item()
        self.assertAlmostEqual(lines[0]["loss"], wanted, delta=1e-5 * wanted)

    def test_pictures(self):
        module = randomized(tf.ViTForImageClassification(tf.ViTConfig(hidden_size=48, num_hidden_layers=2, num_attention_heads=4, intermediate_size=64, image_size=16,
                                                                      patch_size=8, num_labels=CLASSES, hidden_dropout_prob=0, attention_probs_dropout_prob=0)))
        module.save_pretrained(self.folder / "hf")
        self.program("ftc", "import", self.folder / "hf", f"--batch={BATCH}", "-o", self.folder / "model.mlir")
        plan = self.compiled("r:2,alpha:2,targets:all-linear,modules_to_save:classifier", strategy="zero1")
        torch.manual_seed(5)
        count = 2 * BATCH * STEPS
        pixels, labels = torch.randn(count, 3, 16, 16), torch.randint(0, CLASSES, (count,))
        save_file({"pixels": pixels, "labels": labels}, self.folder / "data.safetensors")
        wanted_modules = [name for name, each in module.vit.named_modules() if isinstance(each, torch.nn.Linear)]
        wrapped = self.adapters(module, r=2, lora_alpha=2, target_modules=wanted_modules, modules_to_save=["classifier"])
        lines, _ = self.train(plan, f"--adapter={self.folder / 'start'}", f"--save-hf={self.folder / 'tuned'}", ranks=2)

        def loss_of(step):
            rows = slice(step * 2 * BATCH, (step + 1) * 2 * BATCH)
            return lambda m: m(pixel_values=pixels[rows], labels=labels[rows]).loss
        self.check_steps(lines, self.reference(wrapped, [loss_of(step) for step in range(STEPS)]))
        self.check_logits(self.loaded(module, "tuned"), wrapped, {"pixel_values": pixels[:2]})

    def test_a_module_of_ones_own(self):
        torch.manual_seed(3)
        module, tokens = OwnModel(), self.tokens(BATCH * 3 * STEPS)
        ft.export(module, {"tokens": tokens[:BATCH, :-1].int(), "targets": tokens[:BATCH, 1:].int()}).save(self.folder)
        wrapped = self.adapters(module, r=4, lora_alpha=4, target_modules=["up", "down"])
        plan = self.compiled("r:4,alpha:4,targets:up,down", "--remat=full")
        lines, _ = self.train(plan, f"--adapter={self.folder / 'start'}", f"--save-hf={self.folder / 'tuned'}", ranks=3, init="weights.safetensors")

        def loss_of(step):
            rows = tokens[step * 3 * BATCH:(step + 1) * 3 * BATCH]
            return lambda m: m(rows[:, :-1].int(), rows[:, 1:].int())
        self.check_steps(lines, self.reference(wrapped, [loss_of(step) for step in range(STEPS)]))
        with torch.no_grad():
            ours, theirs = (loss_of(0)(m).item() for m in (self.loaded(module, "tuned"), wrapped))
        self.assertAlmostEqual(ours, theirs, delta=1e-4 * theirs)

    def llama(self):
        module = randomized(tf.LlamaForCausalLM(tf.LlamaConfig(**SIZES)))
        self.model(module)
        return module

    def test_they_start_as_pefts_do(self):
        module = self.llama()
        tokens = self.tokens(8)
        plan = self.compiled("r:8,alpha:16,targets:all-linear")
        lines, done = self.train(plan, f"--save-hf={self.folder / 'one'}", lr=0, steps=1)
        self.assertIn("they start anew", done.stdout + done.stderr)
        # The first loss is the base's own, and so is what evaluation says of it.
        with torch.no_grad():
            base = causal_loss(tokens, slice(0, BATCH))(module).item()
        self.assertAlmostEqual(lines[0]["loss"], base, delta=1e-5 * base)
        ours = load_file(self.folder / "one" / "adapter_model.safetensors")
        everything = []
        for name, tensor in ours.items():
            if "lora_B" in name:
                self.assertEqual(tensor.abs().max().item(), 0, name)
                continue
            bound = tensor.shape[1] ** -0.5  # kaiming_uniform_(a=sqrt(5)) of [rank, in]
            self.assertLessEqual(tensor.abs().max().item(), bound)
            everything.append((tensor / bound).flatten())
        everything = torch.cat(everything)
        self.assertLess(everything.mean().abs().item(), 4 / (3 * len(everything)) ** 0.5)
        self.assertAlmostEqual(everything.std().item(), 3 ** -0.5, delta=0.02)
        self.assertGreater(len(everything.unique()), 0.99 * len(everything))  # of 24 bits

    def test_strategies_resume_and_conversion_give_the_same_bits(self):
        self.llama()
        self.tokens(64)
        lora = "r:4,alpha:8,targets:q_proj,up_proj,dropout:0.1"
        saved = []
        for strategy, settings, ranks in (("no_shard", [], 2), ("full_shard", ["--remat=full"], 2), ("zero1", ["--wrap=none"], 2),
                                          ("shard_grad_op", ["--offload=optimizer", "--prefetch=none"], 2)):
            for dtype in ("fp32", "bf16"):
                with self.subTest(strategy=strategy, dtype=dtype):
                    plan = self.compiled(lora, f"--param-dtype={dtype}", *settings, strategy=strategy)
                    target = self.folder / f"{strategy}-{dtype}"
                    lines, _ = self.train(plan, f"--save-hf={target}", ranks=ranks)
                    saved.append((dtype, [(line["loss"], line["grad_norm"]) for line in lines], (target / "adapter_model.safetensors").read_bytes()))
        for dtype in ("fp32", "bf16"):
            first, *others = [each[1:] for each in saved if each[0] == dtype]
            for other in others:
                self.assertEqual(other, first)
        # Half, saved, and the rest on other ranks; the checkpoint as PEFT has it.
        plan = self.compiled(lora, "--param-dtype=bf16")
        checkpoints = self.folder / "checkpoints"
        self.train(plan, f"--checkpoint-dir={checkpoints}", "--save-every=2", steps=2, ranks=2)
        self.train(plan, f"--checkpoint-dir={checkpoints}", "--save-every=2", f"--save-hf={self.folder / 'resumed'}", "--resume=auto", ranks=2)
        self.assertEqual((self.folder / "resumed" / "adapter_model.safetensors").read_bytes(), saved[1][2])
        self.program("ftckpt", "convert", checkpoints, self.folder / "converted", "--to=hf")
        ours, theirs = (load_file(self.folder / name / "adapter_model.safetensors") for name in ("converted", "resumed"))
        self.assertEqual(sorted(ours), sorted(theirs))
        for name, tensor in ours.items():
            self.assertTrue(torch.equal(tensor, theirs[name]), name)
        self.assertEqual(json.loads((self.folder / "converted" / "adapter_config.json").read_text())["r"], 4)

    def test_the_base_rests_in_two_bytes(self):
        module = self.llama()
        tokens = self.tokens(32)
        plan = self.compiled("r:4,alpha:8,targets:all-linear", "--param-dtype=bf16")
        report = self.explained(plan, "--world-size=2")
        base = sum(p.numel() for p in module.parameters())
        self.assertEqual(report["frozen"], {"parameters": base, "bytes_each": 2})
        trained = report["parameters"] - base
        # Slices are whole blocks of 1024 elements; a unit more of base and of adapters for each of 4 layers.
        self.assertLess(report["at_rest"]["parameters"], 2 * (base + trained) / 2 + 8 * 2 * 1024 + 2 * 1024 * 40)
        self.assertIn("2 bytes each at rest", self.program("ftc", "explain", plan).stdout)
        lines, _ = self.train(plan, f"--save-hf={self.folder / 'tuned'}", ranks=2)
        self.assertEqual(lines[-1].get("arena_bytes", report["arena_bytes"]), report["arena_bytes"])
        tuned = self.loaded(module, "tuned")
        self.assertEqual({p.dtype for n, p in tuned.named_parameters() if "lora_" in n}, {torch.float32})
        # What was trained in bf16 is what PEFT computes, but for rounding.
        evaluating = self.folder / "evaluate.bin"
        self.program("ftc", "compile", self.folder / "model.mlir", "--strategy=no_shard", "--lora=r:4,alpha:8,targets:all-linear", "--evaluate", "-o", evaluating)
        log = self.folder / "eval.jsonl"
        self.program("ftexec", evaluating, "--evaluate", f"--data={self.folder / 'data.safetensors'}", f"--init={self.folder / 'hf'}",
                     f"--adapter={self.folder / 'tuned'}", f"--metrics={log}")
        with torch.no_grad():
            wanted = causal_loss(tokens, slice(0, 32))(tuned).item()
            untuned = causal_loss(tokens, slice(0, 32))(module).item()
        self.assertNotAlmostEqual(wanted, untuned, delta=1e-3)
        self.assertAlmostEqual(metrics_of(log)[-1]["eval_loss"], wanted, delta=1e-5 * wanted)

    def test_what_does_not_fit_is_said(self):
        module = self.llama()
        self.tokens(16)

        def refused(lora, words, *settings):
            done = self.program("ftc", "compile", self.folder / "model.mlir", "--strategy=no_shard", f"--lora={lora}", *settings, "-o", self.folder / "no.bin",
                                status=65 if "targets" in lora and "r:4,alpha:8" in lora else 2)
            self.assertIn(words, done.stderr)
            self.assertEqual(len(done.stderr.strip().splitlines()), 1, done.stderr)
            self.assertFalse((self.folder / "no.bin").exists())
        refused("r:4,targets:q_proj", "has no alpha")
        refused("alpha:4,r:0,targets:q_proj", "r: ")
        refused("r:4,alpha:8,targets:qproj", "no module matches 'qproj'")
        refused("r:4,alpha:8,targets:embed_tokens", "cannot have adapters")
        refused("r:4,alpha:8,targets:input_layernorm", "cannot have adapters: it has 1 dimensions")
        refused("r:4,alpha:8,targets:q_proj,modules_to_save:score", "no module matches 'score'")
        refused("r:4,alpha:8,targets:q_proj,modules_to_save:q_proj", "choose one")
        plan = self.compiled("r:4,alpha:8,targets:q_proj")
        self.adapters(module, r=4, lora_alpha=16, target_modules=["q_proj"], task_type="CAUSAL_LM")

        def fails(words, *options, plan=plan):
            done = self.program("ftexec", plan, f"--data={self.folder / 'data.safetensors'}", "--steps=1", *options, status=65)
            self.assertIn(words, done.stderr)
        fails("lora_alpha is 16, the plan has 8", f"--init={self.folder / 'hf'}", f"--adapter={self.folder / 'start'}")
        self.adapters(module, r=4, lora_alpha=8, target_modules=["q_proj", "k_proj"], task_type="CAUSAL_LM")
        fails("no place", f"--init={self.folder / 'hf'}", f"--adapter={self.folder / 'start'}")
        self.adapters(module, r=4, lora_alpha=8, target_modules=["k_proj"], task_type="CAUSAL_LM")
        fails("has no tensor", f"--init={self.folder / 'hf'}", f"--adapter={self.folder / 'start'}")
        self.program("ftc", "compile", self.folder / "model.mlir", "--strategy=no_shard", "-o", self.folder / "whole.bin")
        for key, value, words in (("init_lora_weights", "pissa", "changes the base"), ("use_dora", True, "use_dora is true"), ("rank_pattern", {"k_proj": 2}, "rank_pattern")):
            self.adapters(module, r=4, lora_alpha=8, target_modules=["q_proj"], task_type="CAUSAL_LM")
            config = json.loads((self.folder / "start" / "adapter_config.json").read_text())
            (self.folder / "start" / "adapter_config.json").write_text(json.dumps(config | {key: value}))
            fails(words, f"--init={self.folder / 'hf'}", f"--adapter={self.folder / 'start'}")
        self.adapters(module, r=4, lora_alpha=8, target_modules=["q_proj"], task_type="CAUSAL_LM")
        fails("--metrics and --adapter are the same file", f"--init={self.folder / 'hf'}", f"--adapter={self.folder / 'start'}",
              f"--metrics={self.folder / 'start' / 'adapter_model.safetensors'}")
        fails("the plan has no adapters", f"--init={self.folder / 'hf'}", f"--adapter={self.folder / 'start'}", plan=self.folder / "whole.bin")


if __name__ == "__main__":
    unittest.main()
