"""--init against folders as transformers writes them: the weights must be those of the plan's model, or the run says why not."""

import json
import shutil
import struct
import unittest

from harness import BIN, SOURCE, EndToEnd, run

VERSIONS = ("v4", "v5")
SIZES = ("--hidden=64", "--layers=2", "--heads=4", "--kv-heads=2", "--ffn=176", "--vocab=256", "--context=64")
MODELS = {"gpt2": ("gpt2",), "llama": ("llama",), "qwen2": ("qwen2-0.5b", *SIZES, "--batch=4", "--seq=64")}


def read(path):
    """name -> (shape, bytes) of a safetensors file of fp32."""
    raw = path.read_bytes()
    (length,) = struct.unpack("<Q", raw[:8])
    header = json.loads(raw[8:8 + length])
    header.pop("__metadata__", None)
    data = raw[8 + length:]
    return {name: (entry["shape"], data[slice(*entry["data_offsets"])]) for name, entry in header.items()}


def write(path, tensors):
    header, data = {}, b""
    for name, (shape, values) in tensors.items():
        header[name] = {"dtype": "F32", "shape": shape, "data_offsets": [len(data), len(data) + len(values)]}
        data += values
    text = json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(text)) + text + data)


def config(version, name):
    return json.loads((SOURCE / "test" / "hf_configs" / version / f"{name}.json").read_text())


class Init(EndToEnd):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.plans, cls.tensors = {}, {}
        for name, model in MODELS.items():
            source, plan = cls.shared / f"{name}.mlir", cls.shared / f"{name}.bin"
            saved = cls.shared / f"{name}.safetensors"
            for command in (("ftc", "model", *model, "-o", source), ("ftc", "compile", source, "--strategy=full_shard", "-o", plan),
                            ("ftexec", plan, f"--data={cls.text}", "--steps=0", f"--save-weights={saved}", "--progress=off")):
                done = run(*command)
                assert done.returncode == 0, done.stderr
            cls.plans[name], cls.tensors[name] = plan, read(saved)

    def folder(self, settings, tensors, name="model"):
        path = self.dir / name
        shutil.rmtree(path, ignore_errors=True)
        path.mkdir()
        write(path / "model.safetensors", tensors)
        if settings is not None:
            (path / "config.json").write_text(settings if isinstance(settings, str) else json.dumps(settings))
        return path

    def start(self, model, path, *options):
        return run("ftexec", self.plans[model], f"--data={self.text}", "--steps=1", "--shuffle=off", "--progress=off",
                   f"--init={path}", *options)

    def taken(self, model, path, *options):
        done = self.start(model, path, *options)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(done.stderr, "")
        return done.stdout

    def refused(self, model, path, *words, options=(), without=()):
        """Status 65 and one line, with all of the words."""
        done = self.start(model, path, *options)
        self.assertEqual((done.returncode, done.stdout), (65, ""), done.stderr)
        self.assertEqual(len(done.stderr.splitlines()), 1, done.stderr)
        self.assertLess(len(done.stderr), 4096)
        for word in words:
            self.assertIn(word, done.stderr)
        for word in without:
            self.assertNotIn(word, done.stderr)
        return done.stderr

    def test_folders_of_the_model(self):
        for version in VERSIONS:
            for model, name in (("gpt2", "gpt2"), ("llama", "llama"), ("qwen2", "qwen2"), ("llama", "mistral_no_window")):
                with self.subTest(version=version, name=name):
                    out = self.taken(model, self.folder(config(version, name), self.tensors[model]))
                    self.assertEqual("dropout" in out, name == "gpt2")
                    self.assertNotIn("not compared", out)
            out = self.taken("llama", self.folder(config(version, "mistral"), self.tensors["llama"]))
            self.assertIn("sliding window of 4096 hides nothing", out)

    def test_all_differences_at_once(self):
        for version, rope in (("v4", "rope_theta"), ("v5", "rope_parameters.rope_theta")):
            with self.subTest(version=version):
                settings = config(version, "llama_theta")
                settings |= {"rms_norm_eps": 1e-6, "hidden_act": "gelu", "tie_word_embeddings": True, "attention_bias": True,
                             "head_dim": 32, "final_logit_softcapping": 30.0}
                tensors = self.tensors["llama"] | {f"model.layers.{i}.self_attn.q_norm.weight": ([16], bytes(64)) for i in range(2)}
                folder = self.folder(settings, tensors)
                line = self.refused(
                    "llama", folder, f"ftexec: these are not the weights of the plan's model: '{folder}/config.json': head_dim is 32, ",
                    f"; {rope} is 500000.0, the model's rope_theta is 10000; ", "; rms_norm_eps is 1e-06, the model's norm_eps is 1e-05; ",
                    '; hidden_act is "gelu", the model\'s activation is "silu"; ', "; attention_bias is true, the model's qkv_bias is false",
                    "; tie_word_embeddings is true, the model's tied_head is false; ",
                    '; "final_logit_softcapping" is 30.0, which is not understood; ',
                    "model.layers.*.self_attn.q_norm.weight (2: 0 to 1) (--allow-unused=GLOB leaves")
                self.assertEqual(line.count(" the model's "), 7, line)

    def test_each_family_that_only_looks_like_a_llama(self):
        """They have the names and shapes of a Llama's tensors."""
        for version in VERSIONS:
            for name, words in (("llama3_scaled", ('"llama3"',)), ("llama_linear", ('"linear"',)), ("llama_yarn", ('"yarn"',)),
                                ("mistral_window", ("sliding_window is 16",)),
                                ("gemma", ("rms_norm_plus_one", "gelu_pytorch_tanh", "embedding_multiplier")),
                                ("granite", ("logits_scaling is 8.0", "attention_multiplier", "residual_multiplier is 0.22")),
                                ("smollm3", ("no_rope_layers",)), ("qwen2_untied", ("qkv_bias is true in every qwen2",)),
                                ("qwen3", ("qk_norm",)), ("olmo2", ('norm_placement is "output"', 'qk_norm is "projection"')), ("gpt2", ('positions is "learned"',))):
                with self.subTest(version=version, name=name):
                    self.refused("llama", self.folder(config(version, name), self.tensors["llama"]), *words)

    def test_gpt2_of_another_kind(self):
        for version in VERSIONS:
            self.refused("gpt2", self.folder(config(version, "gpt2_other"), self.tensors["gpt2"]), "scale_attn_weights is false",
                         "layer_norm_epsilon is 1e-06", 'activation_function is "gelu"', "scale_attn_by_inverse_layer_idx is true")

    def test_tensors_that_are_left_over(self):
        settings = config("v5", "llama")
        tensors = self.tensors["llama"] | {"score.weight": ([2, 64], bytes(512)), "adapter.0.w": ([1], bytes(4)),
                                           "adapter.1.w": ([1], bytes(4))}
        folder = self.folder(settings, tensors)
        self.refused("llama", folder, "3 tensors of ", " have no place in the model: score.weight, adapter.*.w (2: 0 to 1)")
        self.refused("llama", folder, "1 tensor of", "score.weight", options=("--allow-unused=adapter.*",), without=("adapter",))
        for options in (("--allow-unused=adapter.*,score.weight",), ("--allow-unused=adapter.*", "--allow-unused=s*"),
                        ("--allow-unused", "*")):
            self.assertIn("3 tensors of ", self.taken("llama", folder, *options))
        # A file alone is as strict.
        alone = self.dir / "alone.safetensors"
        write(alone, tensors)
        self.refused("llama", alone, "3 tensors of ")
        done = run("ftexec", self.plans["llama"], f"--data={self.text}", "--allow-unused=*")
        self.assertEqual((done.returncode, done.stderr), (2, "ftexec: --allow-unused needs --init\n"))

    def test_buffers_that_transformers_ignores(self):
        masks = {f"transformer.h.{i}.attn.{name}": ([1], bytes(4)) for i in range(2) for name in ("bias", "masked_bias")}
        self.taken("gpt2", self.folder(config("v4", "gpt2"), self.tensors["gpt2"] | masks))
        frequencies = {f"model.layers.{i}.self_attn.rotary_emb.inv_freq": ([8], bytes(32)) for i in range(2)}
        self.taken("llama", self.folder(config("v4", "llama"), self.tensors["llama"] | frequencies))

    def test_bare_models_and_tied_heads(self):
        tensors = {name.removeprefix("transformer."): value for name, value in self.tensors["gpt2"].items()}
        masks = {f"h.{i}.attn.bias": ([1], bytes(4)) for i in range(2)}
        self.taken("gpt2", self.folder(config("v4", "gpt2"), tensors | masks))
        head = tensors["wte.weight"]
        self.taken("gpt2", self.folder(config("v4", "gpt2"), tensors | {"lm_head.weight": head}))
        self.refused("gpt2", self.folder(config("v4", "gpt2"), tensors | {"lm_head.weight": (head[0], bytes(len(head[1])))}),
                     "are one in the model but differ")
        # Of the head itself, where it is the only one.
        tied = dict(self.tensors["qwen2"])
        tied["lm_head.weight"] = tied.pop("model.embed_tokens.weight")
        self.taken("qwen2", self.folder(config("v5", "qwen2"), tied))

    def test_what_is_compared_beside_a_file(self):
        folder = self.folder(config("v5", "llama_theta"), self.tensors["llama"])
        self.refused("llama", folder / "model.safetensors", "rope_theta is 500000.0")
        (folder / "model.safetensors").rename(folder / "other.safetensors")
        self.refused("llama", folder / "other.safetensors", "rope_theta is 500000.0")
        shutil.copy(folder / "other.safetensors", self.dir / "alone.safetensors")
        self.assertNotIn("config.json", self.taken("llama", self.dir / "alone.safetensors"))
        # The settings of another program beside weights are none of a model.
        (folder / "config.json").write_text('{"learning_rate": 0.1}')
        self.assertIn("was not compared: it does not say a model_type", self.taken("llama", folder / "other.safetensors"))
        (folder / "other.safetensors").rename(folder / "model.safetensors")
        self.refused("llama", folder, "does not say its model_type")

    def test_a_sharded_folder(self):
        folder = self.folder(config("v5", "llama"), {})
        (folder / "model.safetensors").unlink()
        names = sorted(self.tensors["llama"])
        halves = {"model-00001-of-00002.safetensors": names[::2], "model-00002-of-00002.safetensors": names[1::2]}
        for file, part in halves.items():
            write(folder / file, {name: self.tensors["llama"][name] for name in part})
        index = folder / "model.safetensors.index.json"
        index.write_text(json.dumps({"weight_map": {name: file for file, part in halves.items() for name in part}}))
        self.taken("llama", folder)
        self.taken("llama", index)
        (folder / "config.json").write_text(json.dumps(config("v5", "llama_theta")))
        self.refused("llama", folder, "rope_theta is 500000.0")
        self.refused("llama", index, "rope_theta is 500000.0")

    def test_nothing_to_compare_with(self):
        self.assertIn("has no config.json: only tensors were compared", self.taken("llama", self.folder(None, self.tensors["llama"])))

    def test_a_model_without_facts(self):
        text = (self.shared / "llama.mlir").read_text()
        start = text.index("ft.facts = {")
        end = text.index("}, ", start) + 3
        source, plan = self.dir / "plain.mlir", self.dir / "plain.bin"
        source.write_text(text[:start] + text[end:])
        self.check("ftc", "compile", source, "--strategy=full_shard", "-o", plan)
        folder = self.folder(config("v5", "llama_theta"), self.tensors["llama"])
        done = self.check("ftexec", plan, f"--data={self.text}", "--steps=1", "--progress=off", f"--init={folder}")
        self.assertIn(f"'{folder}/config.json' was not compared: the model does not say its facts (ft.facts)", done.stdout)

    def test_hostile_configs(self):
        for text, word in (("", "not valid JSON at byte 0"), ("[]", "no JSON object"), ('{"a": NaN}', "not valid JSON"),
                           ('{"model_type": "llama", "rope_theta": 1e999}', "too large"), ("\0" * 100, "not valid JSON"),
                           ('{"a": ' * 100000 + "1" + "}" * 100000, "nests deeper"), (" " * (1 << 25), "33554432 bytes"),
                           (json.dumps(config("v5", "llama") | {"hidden_size": "x" * 1000000}), "expected a whole number"),
                           (json.dumps(config("v5", "llama") | {f"key{i}": 1 for i in range(100000)}), " more in config.json")):
            with self.subTest(word=word):
                self.refused("llama", self.folder(text, self.tensors["llama"]), word)
        folder = self.folder(None, self.tensors["llama"])
        (folder / "config.json").mkdir()
        self.refused("llama", folder, "config.json")

    def test_more_ranks(self):
        folder = self.folder(config("v5", "llama_theta"), self.tensors["llama"])
        done = run("ftrun", "--standalone", "--nproc-per-node=3", BIN / "ftexec", self.plans["llama"], f"--data={self.text}",
                   "--steps=1", "--progress=off", f"--init={folder}")
        self.assertEqual(done.returncode, 65, done.stderr)
        self.assertIn("rope_theta is 500000.0, the model's rope_theta is 10000", done.stderr)
        folder = self.folder(config("v5", "llama"), self.tensors["llama"])
        done = self.check("ftrun", "--standalone", "--nproc-per-node=3", BIN / "ftexec", self.plans["llama"],
                          f"--data={self.text}", "--steps=1", "--progress=off", f"--init={folder}")
        self.assertEqual(done.stderr, "")


if __name__ == "__main__":
    unittest.main()
