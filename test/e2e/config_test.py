"""train.yaml: precedence, spellings of other programs, mistakes with their place, --print-config read back."""

import itertools
import re
import unittest

from harness import EndToEnd, run

FSDP = """\
fsdp:
  fsdp_sharding_strategy: FULL_SHARD
  fsdp_backward_prefetch: BACKWARD_POST
  fsdp_auto_wrap_policy: TRANSFORMER_BASED_WRAP
  fsdp_param_dtype: bf16
  activation_checkpointing: {enabled: true, checkpoint_every_n_layers: 2}
learning_rate: 1.0e-3
max_grad_norm: 0.5
"""
DEEPSPEED = """\
zero_optimization:
  stage: 2
  overlap_comm: false
  reduce_bucket_size: 5.24288e5
  offload_optimizer: {device: cpu}
bf16: {enabled: true}
gradient_clipping: 0.25
gradient_accumulation_steps: 4
train_micro_batch_size_per_gpu: 4
optimizer: {type: AdamW, params: {lr: 2.0e-4, betas: [0.8, 0.9], eps: 1.0e-6, weight_decay: 0.01}}
scheduler: {type: WarmupDecayLR, params: {warmup_num_steps: 10, total_num_steps: 100}}
"""


class Config(EndToEnd):
    def setUp(self):
        super().setUp()
        self.model, self.config = self.dir / "model.mlir", self.dir / "train.yaml"

    def compile(self, text, *flags):
        if text is not None:
            self.config.write_bytes(text if isinstance(text, bytes) else text.encode())
            flags = (f"--config={self.config}", *flags)
        return run("ftc", "compile", self.model, *flags)

    def printed(self, text, *flags):
        """What --print-config says, as {key: value} and {key: source}."""
        done = self.compile(text, *flags, "--print-config")
        self.assertEqual(done.returncode, 0, done.stderr)
        rows = re.findall(r"^(\w+): (.*?) +# (.*)$", done.stdout, re.M)
        self.text_printed = done.stdout
        return {k: v for k, v, _ in rows}, {k: s for k, _, s in rows}

    def refused(self, done, status, *words):
        lines = done.stderr.splitlines()
        self.assertEqual((done.returncode, len(lines), done.stdout), (status, 1, ""), done.stderr)
        for word in words:
            self.assertIn(word, lines[0])
        self.assertFalse((self.dir / "plan.bin").exists())

    def test_spellings(self):
        values, _ = self.printed(FSDP)
        for key, value in dict(strategy="full_shard", prefetch="post", wrap="transformer", param_dtype="bf16",
                               reduce_dtype="fp32", remat="every_n:2", lr="0.001", clip="0.5").items():
            self.assertEqual(values[key], value, key)
        values, _ = self.printed(DEEPSPEED)
        for key, value in dict(strategy="shard_grad_op", prefetch="none", bucket_cap_mb="1", reduce_bucket_mb="1", offload="optimizer",
                               reduce_dtype="bf16", clip="0.25", micro_steps="4", batch="4", betas="0.8,0.9", eps="1e-06",
                               weight_decay="0.01", lr="0.0002", lr_schedule="linear", warmup_steps="10", steps="100").items():
            self.assertEqual(values[key], value, key)

    def test_precedence_and_sources(self):
        values, sources = self.printed(FSDP, "--clip=2", "--strategy=ddp", "--mixed-precision=no")
        self.assertEqual((values["clip"], values["strategy"], values["param_dtype"]), ("2", "no_shard", "fp32"))
        self.assertEqual((sources["clip"], sources["strategy"]), ("flag --clip", "flag --strategy"))
        self.assertEqual(sources["prefetch"], f"{self.config}:3 (fsdp.fsdp_backward_prefetch)")
        self.assertEqual(sources["seed"], "default")
        self.assertFalse(self.model.exists())  # nothing was compiled

    def test_printed_configuration_reads_back(self):
        flags = ("--wrap=names:transformer.h.*,it's #1", "--remat=budget:1.5GiB", "--memory-budget=500MB", "--frozen=*.wte.*",
                 "--mesh=replica:2,shard:3", "--nesterov", "--optimizer=sgd", "--momentum=0.9", "--loss-scale=64",
                 "--target=h100-ib", "--bucket-cap-mb=0.1")
        for text, extra in ((FSDP, ()), (DEEPSPEED, ()), (FSDP, flags), ("strategy: ddp\n", ("--warmup-ratio=0.1",))):
            with self.subTest(text=text[:10], extra=extra[:1]):
                first, _ = self.printed(text, *extra)
                again, sources = self.printed(self.text_printed)
                self.assertEqual(again, first)
                self.assertEqual({s.split(":")[0] for s in sources.values()}, {str(self.config)})

    def test_every_flag_of_the_help_is_a_key(self):
        known, _ = self.printed("strategy: ddp\n")
        text = run("ftc", "compile", "--help").stdout
        flags = set(re.findall(r"^  (?:-\w,)?--([\w-]+)", text, re.M))
        own = {"help", "config", "print-config", "output", "dump", "dump-dir", "mixed-precision"}
        self.assertEqual(flags - own, {key.replace("_", "-") for key in known})
        self.assertEqual(own - flags - {"help"}, set())

    def test_mistakes_in_the_file(self):
        for text, words in (
                ("strategy: full_shard\nfsdp:\n  fsdp_shardng_strategy: NO_SHARD\n",
                 (":3: unknown key 'fsdp.fsdp_shardng_strategy'; did you mean 'fsdp_sharding_strategy'?",)),
                ("strategy: full_shard\nlr: fast\n", (":2:5: 'lr': 'fast'",)),
                ("strategy: full_shard\nseed: 1e99\n", (":2:7: 'seed'",)),
                ("strategy: full_shard\nfsdp: [1, 2]\n", (":2:7:", "section")),
                ("strategy: full_shard\nclip: 1\nclip: 2\n", (":3:1: 'clip' is given twice, first in line 2",)),
                ("strategy: full_shard\nclip: [1\nlr: 2\n", (":3:", "not YAML")),
                ("strategy: full_shard\n\tclip: 1\n", (":2:",)),
                ("strategy: full_shard\nfsdp:\n\tclip: 1\n", (":3:",)),
                (b"strategy: full_shard\nclip: \xff\n", (":2:", "not UTF-8")),
                (b"s\0t", (":1:", "not UTF-8")),
                ("zero_optimization: {stage: 3}\nfsdp:\n  fsdp_sharding_strategy: NO_SHARD\n",
                 ("train.yaml:1 ", "train.yaml:3 ", "contradict")),
                ("strategy: ddp\nbf16: {enabled: true}\nfp16: {enabled: true}\n", ("train.yaml:2 ", "train.yaml:3 ")),
                ("strategy: ddp\nwarmup_steps: 4\nwarmup_ratio: 0.5\n", ("train.yaml:2 ", "train.yaml:3 ")),
                ("a: &a [x, x]\nb: &b [*a, *a]\n", (":2:",)),
                ("strategy: " + "[" * 20000, (":1:", "nested deeper")),
                ("".join(f"k{i}: &k{i} {{a: *k{i - 1} , b: *k{i - 1} }}\n" if i else "k0: &k0 {a: 1}\n" for i in range(60)),
                 ("more than 10000 entries",)),
                ("x" * 2**21, ("1 MiB",))):
            with self.subTest(text=text[:60]):
                self.refused(self.compile(text, "-o", self.dir / "plan.bin"), 65, "train.yaml:", *words)

    def test_mistakes_in_flags_and_files_that_are_not_there(self):
        for flags, words in (
                (("--strategy=fullshard",), ("did you mean 'full_shard'?",)), (("--prefetch=one",), ("prefetch", "'one'")),
                (("--eps=-1",), ("--eps", "'-1'")), (("--betas=0.9",), ("--betas", "two numbers")),
                (("--clip=1", "--clip=2"), ("--clip is given 2 times",)), (("--memory-budget=8G",), ("8GiB",)),
                (("--persistance-threshold=1",), ("did you mean '--persistence-threshold'?",)),
                (("--remat=ops:mpl",), ("did you mean 'mlp'?",)), (("--target=h1000",), ("did you mean 'h100'?",)),
                (("--world-size=3", "--mesh=replica:2,shard:2"), ("--mesh", "--world-size", "contradict")),
                (("--nesterov", "--optimizer=sgd"), ("--nesterov", "momentum")),
                (("--warmup-steps=3", "--warmup-ratio=0.1"), ("--warmup-steps", "--warmup-ratio"))):
            with self.subTest(flags=flags):
                self.refused(self.compile("strategy: ddp\n", *flags), 2, *words)
        self.refused(self.compile("lr: 1\n"), 2, "--strategy is missing")
        self.refused(run("ftc", "compile", self.model, "--config=absent.yaml"), 74, "absent.yaml")
        self.refused(run("ftc", "compile", self.model, f"--config={self.dir}"), 74, "directory")
        self.refused(run("ftc", "compile", "--strategy=ddp"), 2, "model is required")

    def test_what_has_no_effect_is_said(self):
        for text, words in (("strategy: ddp\nfsdp: {fsdp_use_orig_params: true}\n", ("fsdp_use_orig_params", ":2 ")),
                            ("strategy: ddp\nfsdp: {fsdp_state_dict_type: SHARDED_STATE_DICT}\n", ("state_dict_type",)),
                            ("strategy: ddp\nmomentum: 0.9\n", ("optimizer is adamw",)),
                            ("strategy: ddp\noptimizer: {type: Adam}\n", ("adamw, as in DeepSpeed",)),
                            ("strategy: ddp\nzero_optimization: {stage3_max_live_parameters: 5}\n", ("limit_all_gathers=2",))):
            with self.subTest(text=text):
                done = self.compile(text, "--print-config")
                self.assertEqual((done.returncode, len(done.stderr.splitlines())), (0, 1), done.stderr)
                for word in words:
                    self.assertIn(word, done.stderr)
        self.assertEqual(self.compile(FSDP, "--print-config").stderr, "")

    def test_plans(self):
        """The same settings make the same plan, wherever they stand; the batch is the model's."""
        self.check("ftc", "model", "gpt2", "-o", self.model)
        self.config.write_text("fsdp: {fsdp_sharding_strategy: FULL_SHARD}\nmax_grad_norm: 0.5\n"
                               "train_micro_batch_size_per_gpu: 4\n")
        plans = [self.dir / name for name in ("file.bin", "flags.bin", "printed.bin")]
        config = f"--config={self.config}"
        self.check("ftc", "compile", self.model, config, "-o", plans[0])
        self.check("ftc", "compile", self.model, "--strategy=full_shard", "--clip=0.5", "-o", plans[1])
        printed = self.dir / "printed.yaml"
        printed.write_text(self.check("ftc", "compile", self.model, config, "--print-config").stdout)
        self.check("ftc", "compile", self.model, f"--config={printed}", "-o", plans[2])
        for a, b in itertools.pairwise(plans):
            self.assertEqual(a.read_bytes(), b.read_bytes())
        done = run("ftc", "compile", self.model, config, "--batch=8", "-o", self.dir / "plan.bin")
        self.refused(done, 65, "--batch wants a batch of 8", "has one of 4")
        dumped = self.check("ftc", "--dump=parse", self.model, config).stdout
        self.assertIn("@forward", dumped)


if __name__ == "__main__":
    unittest.main()
