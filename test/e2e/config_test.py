"""train.yaml: precedence, spellings of other programs, mistakes with their place, --print-config read back."""

import itertools
import json
import re
import unittest

from harness import BIN, EndToEnd, run

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
        self.refused(run("ftc", "compile", self.model, f"--config={self.dir}"), 65, "directory")
        self.refused(run("ftc", "compile", "--strategy=ddp"), 2, "model is required")

    def test_what_has_no_effect_is_said(self):
        for text, words in (("strategy: ddp\nfsdp: {fsdp_use_orig_params: true}\n", ("fsdp_use_orig_params", ":2 ")),
                            ("strategy: ddp\nfsdp: {fsdp_state_dict_type: SHARDED_STATE_DICT}\n", ("state_dict_type",)),
                            ("strategy: ddp\nmomentum: 0.9\n", ("optimizer is adamw",)),
                            ("strategy: ddp\noptimizer: {type: Adam, params: {lr: 3.0e-4, betas: [0.9, 0.95], weight_decay: 0.1}}\n",
                             ("adamw, as in DeepSpeed",)),
                            ("strategy: ddp\nzero_optimization: {stage3_max_live_parameters: 5}\n", ("limit_all_gathers=2",))):
            with self.subTest(text=text):
                done = self.compile(text, "--print-config")
                self.assertEqual((done.returncode, len(done.stderr.splitlines())), (0, 1), done.stderr)
                for word in words:
                    self.assertIn(word, done.stderr)
        self.assertEqual(self.compile(FSDP, "--print-config").stderr, "")

    def test_files_of_accelerate(self):
        """As `accelerate config` writes them: everything at rest is written too."""
        rest = ("compute_environment: LOCAL_MACHINE\ndebug: false\ndowncast_bf16: 'no'\nenable_cpu_affinity: false\nmachine_rank: 0\n"
                "main_training_function: main\nnum_machines: 1\nrdzv_backend: static\nsame_network: true\ntpu_env: []\n"
                "tpu_use_cluster: false\ntpu_use_sudo: false\nuse_cpu: false\nmixed_precision: bf16\n")
        for text, strategy in (("distributed_type: MULTI_GPU\n", "no_shard"), ("distributed_type: FSDP\n", "full_shard"),
                               ("distributed_type: DEEPSPEED\ndeepspeed_config: {zero_stage: 1}\n", "zero1")):
            with self.subTest(text=text):
                values, _ = self.printed(rest + text)
                self.assertEqual((values["strategy"], values["param_dtype"]), (strategy, "bf16"))
        done = self.compile(rest + "distributed_type: FSDP\n", "--print-config")
        self.assertEqual(len(done.stderr.splitlines()), 2, done.stderr)  # full_shard; the optimizer
        self.assertIn("leaves the optimizer to a training script; here it is optimizer=adamw, lr=0.0003", done.stderr)
        for text, reason in (("distributed_type: FSDP\nparallelism_config: {parallelism_config_tp_size: 2}\n", "tensor parallelism"),
                             ("distributed_type: MEGATRON_LM\n", "Megatron-LM"), ("fp8: {enabled: true}\n", "mixed_precision: fp8"),
                             ("compute_environment: AMAZON_SAGEMAKER\n", "SageMaker"),
                             ("distributed_type: FSDP\nnum_proceses: 2\n", "did you mean 'num_processes'?")):
            with self.subTest(text=text):
                self.refused(self.compile(text, "-o", self.dir / "plan.bin"), 65, "train.yaml:", reason)

    def test_a_deepspeed_file_that_is_named(self):
        text = "distributed_type: DEEPSPEED\ndeepspeed_config:\n  deepspeed_config_file: json/zero.json\n"
        self.refused(self.compile(text), 74, "train.yaml:3", "json/zero.json")
        zero = self.dir / "json" / "zero.json"
        zero.parent.mkdir()
        zero.write_text('{"zero_optimization": {"stage": 3}, "bf16": {"enabled": "auto"}, "gradient_clipping": "auto"}\n')
        values, sources = self.printed(text)
        self.assertEqual((values["strategy"], sources["strategy"]), ("full_shard", f"{zero}:1 (zero_optimization.stage)"))
        done = self.compile(text, "--print-config")
        self.assertIn("mixed_precision=no", done.stderr)
        self.assertIn("clip=1", done.stderr)
        zero.write_text('{"zero_optimization": {"stage": 3, "stge": 1}}\n')
        self.refused(self.compile(text), 65, "zero.json:1: unknown key 'zero_optimization.stge'")

    def test_absent_keys_have_the_defaults_of_their_program(self):
        text = '{"zero_optimization": {"stage": 2}, "optimizer": {"type": "AdamW", "params": {"lr": 1e-4}}}\n'
        values, sources = self.printed(text)
        for key, value in dict(betas="0.9,0.999", weight_decay="0", clip="0").items():
            self.assertEqual((values[key], sources[key]), (value, "DeepSpeed's default"), key)
        self.assertIn("betas=0.9,0.999 (ours: 0.9,0.95), weight_decay=0 (ours: 0.1), clip=0 (ours: 1)",
                      self.compile(text, "--print-config").stderr)
        values, sources = self.printed(text, "--clip=0.5")
        self.assertEqual((values["clip"], sources["clip"]), ("0.5", "flag --clip"))

    def test_help(self):
        text = run("ftc", "compile", "--help").stdout
        self.assertIn("--nesterov [=on|off]", text)
        self.assertNotIn("{", text)
        for flag, value in (("--nesterov", "true"), ("--nesterov=on", "true"), ("--nesterov=off", "false")):
            values, _ = self.printed("strategy: ddp\noptimizer: sgd\nmomentum: 0.5\n", flag)
            self.assertEqual(values["nesterov"], value)
        self.refused(self.compile("strategy: ddp\n", "--nesterov=maybe"), 2, "maybe")

    def test_training_as_deepspeed_schedules_it(self):
        """The rates of the metrics are those of DeepSpeed's own classes; the global batch is that of the ranks."""
        self.check("ftc", "model", "gpt2", "--batch=2", "--seq=16", "-o", self.model)
        self.config.write_text("""{"zero_optimization": {"stage": 3}, "train_batch_size": 8, "gradient_accumulation_steps": 2,
            "gradient_clipping": 1.0, "optimizer": {"type": "AdamW", "params": {"lr": 0.0006}},
            "scheduler": {"type": "WarmupCosineLR", "params": {"warmup_num_steps": 3, "total_num_steps": 8, "warmup_min_ratio": 0.25}}}""")
        plan, metrics = self.dir / "plan.bin", self.dir / "metrics.jsonl"
        self.check("ftc", "compile", self.model, f"--config={self.config}", "-o", plan)
        corpus = self.dir / "corpus.txt"
        corpus.write_bytes(b"the quick brown fox jumps over the lazy dog. " * 40)
        done = run("ftexec", plan, f"--data={corpus}")
        self.refused_run(done, "global batch of 8 sequences", "2 sequences x 2 micro-steps x 1 ranks are 4; run 2 ranks")
        self.check("ftrun", "--nproc-per-node=2", "--standalone", BIN / "ftexec", plan, f"--data={corpus}", f"--metrics={metrics}")
        rates = [json.loads(line)["lr"] for line in metrics.read_text().splitlines()]
        wanted = [0.0, 0.00015, 0.00043391838910715577, 0.0006, 0.000542710827802653, 0.00039272582780265294,
                  0.00020733417219734703, 5.734917219734704e-05]  # runtime/lr_schedules.py of DeepSpeed 0.19.6
        self.assertEqual(len(rates), len(wanted))
        for rate, value in zip(rates, wanted):
            self.assertAlmostEqual(rate, value, delta=1e-7 * 6e-4)
        done = run("ftc", "compile", self.model, f"--config={self.config}", "--micro-steps=3", "-o", self.dir / "other.bin")
        self.assertEqual(done.returncode, 65, done.stderr)
        self.assertIn("wants 8 sequences a step, which is no multiple of the model's batch of 2 in 3 micro-steps", done.stderr)

    def refused_run(self, done, *words):
        lines = done.stderr.splitlines()
        self.assertEqual((done.returncode, len(lines)), (65, 1), done.stderr)
        for word in words:
            self.assertIn(word, lines[0])

    def test_plans(self):
        """The same settings make the same plan, wherever they stand."""
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
        dumped = self.check("ftc", "--dump=parse", self.model, config).stdout
        self.assertIn("@forward", dumped)


if __name__ == "__main__":
    unittest.main()
