// Precedence, contradictions and what --print-config prints.
#include "tools/ftc/config/configure.h"

#include <gtest/gtest.h>

#include <string>

#include "tools/ftc/config/file_layer.h"
#include "tools/ftc/config/settings.h"

namespace ftc {
namespace {

std::vector<Given> Flags(const std::vector<std::pair<std::string, std::string>>& flags) {
  std::vector<Given> given;
  for (const auto& [name, value] : flags)
    given.push_back(std::get<Given>(GivenByFlag(SettingIndex(name), value)));
  return given;
}

std::variant<Effective, Refusal> Resolved(const std::string& text, const std::vector<Given>& flags) {
  const absl::StatusOr<TrainYaml> file = ParseTrainYaml(text, "train.yaml");
  EXPECT_TRUE(file.ok()) << file.status();
  const absl::StatusOr<FileLayer> layer = ReadFileLayer(*file, flags);
  EXPECT_TRUE(layer.ok()) << layer.status();
  return Resolve(layer->given, flags);
}

Effective Good(const std::string& text, const std::vector<std::pair<std::string, std::string>>& flags = {}) {
  std::variant<Effective, Refusal> resolved = Resolved(text, Flags(flags));
  const auto* refusal = std::get_if<Refusal>(&resolved);
  EXPECT_EQ(refusal, nullptr) << refusal->message;
  return refusal == nullptr ? std::get<Effective>(resolved) : Effective();
}

Refusal Bad(const std::string& text, const std::vector<std::pair<std::string, std::string>>& flags = {}) {
  std::variant<Effective, Refusal> resolved = Resolved(text, Flags(flags));
  const auto* refusal = std::get_if<Refusal>(&resolved);
  EXPECT_NE(refusal, nullptr) << text;
  return refusal == nullptr ? Refusal() : *refusal;
}

TEST(ConfigureTest, FlagsOverTheFileOverDefaults) {
  const Effective effective = Good("strategy: zero2\nlr: 0.1\nbf16: {enabled: true}\nreduce_dtype: fp32\n",
                                   {{"lr", "0.2"}, {"buffer_dtype", "fp32"}});
  const Configuration& c = effective.configuration;
  EXPECT_EQ(c.options.strategy, "shard_grad_op");
  EXPECT_EQ(c.run.lr, 0.2);
  EXPECT_EQ(c.options.paramDtype, "bf16");
  EXPECT_EQ(c.options.reduceDtype, "fp32");
  EXPECT_EQ(c.options.bufferDtype, "fp32");
  EXPECT_EQ(c.run.seed, 42);
  EXPECT_EQ(NameOf(effective.OriginOf("lr")), "--lr");
  EXPECT_EQ(NameOf(effective.OriginOf("strategy")), "'strategy' in train.yaml:1");
  EXPECT_EQ(NameOf(effective.OriginOf("param_dtype")), "'bf16.enabled' in train.yaml:3");
  EXPECT_EQ(NameOf(effective.OriginOf("seed")), "the default");
  // A flag that stands for three wins over each of the file's.
  EXPECT_EQ(Good("strategy: ddp\nparam_dtype: bf16\n", {{"mixed_precision", "fp16"}})
                .configuration.options.paramDtype,
            "fp16");
}

TEST(ConfigureTest, Contradictions) {
  EXPECT_EQ(Bad("zero_optimization:\n  stage: 3\nfsdp:\n  fsdp_sharding_strategy: NO_SHARD\n").message,
            "'zero_optimization.stage' in train.yaml:2 and 'fsdp.fsdp_sharding_strategy' in train.yaml:4 "
            "contradict each "
            "other: strategy = full_shard or no_shard");
  EXPECT_EQ(Bad("strategy: ddp\nbf16: {enabled: true}\nfp16: {enabled: true}\n").message,
            "'bf16.enabled' in train.yaml:2 and 'fp16.enabled' in train.yaml:3 contradict each other: "
            "mixed_precision = "
            "bf16 or fp16");
  EXPECT_FALSE(Bad("strategy: ddp\nlr: 1\nlearning_rate: 2\n").usage);
  EXPECT_FALSE(Bad("strategy: ddp\nwarmup_steps: 10\nwarmup_ratio: 0.1\n").usage);
  EXPECT_TRUE(Bad("strategy: ddp", {{"warmup_steps", "10"}, {"warmup_ratio", "0.1"}}).usage);
  EXPECT_TRUE(Bad("strategy: ddp", {{"world_size", "3"}, {"mesh", "replica:2,shard:2"}}).usage);
  EXPECT_TRUE(Bad("strategy: ddp\noptimizer: sgd", {{"nesterov", "true"}}).usage);
  EXPECT_EQ(
      Bad("strategy: ddp\nbf16: {enabled: true}\noptimizer: {type: AdamW, stochastic_rounding: true}\n")
          .message,
      "'optimizer.stochastic_rounding' in train.yaml:3: stochastic rounding wants bf16 weights without fp32 "
      "masters: param_dtype: bf16 and master_weights: off");
  EXPECT_EQ(Bad("strategy: ddp\nparam_dtype: fp16\n", {{"master_weights", "off"}}).message,
            "--master-weights and 'param_dtype' in train.yaml:2 contradict each other: fp16 weights want "
            "fp32 masters; off wants param_dtype: bf16");
  EXPECT_EQ(
      Bad("strategy: ddp\nmaster_weights: off\n").message,
      "'master_weights' in train.yaml:2: fp32 weights are their own master; off wants param_dtype: bf16");
  EXPECT_EQ(Bad("strategy: ddp\nmin_lr: 0.1\nlr: 0.01\n").message,
            "'min_lr' in train.yaml:2 and 'lr' in train.yaml:3 contradict each other: min_lr = 0.1 is above "
            "lr = 0.01");
  EXPECT_EQ(Bad("strategy: ddp\nmicro_steps: 2\naccumulate_dtype: bf16\n").message,
            "'accumulate_dtype' in train.yaml:3: gradients of fp32 are added up in fp32");
  EXPECT_EQ(
      Bad("strategy: ddp\nmicro_steps: 2\nbf16: {enabled: true}\ndata_types: {grad_accum_dtype: fp16}\n")
          .message,
      "'data_types.grad_accum_dtype' in train.yaml:4 and 'bf16.enabled' in train.yaml:3 contradict each "
      "other: "
      "gradients of bf16 are added up in fp32 or in bf16");
  EXPECT_EQ(Bad("strategy: ddp\naccumulate_dtype: bf16\n").message,
            "'accumulate_dtype' in train.yaml:2: gradients of fp32 are added up in fp32");
  EXPECT_EQ(
      Good("strategy: ddp\naccumulate_dtype: bf16\nevaluate: on\n").configuration.options.accumulateDtype,
      "bf16");
  EXPECT_TRUE(Bad("lr: 1").usage);
  EXPECT_TRUE(Bad("lr: 1").message.starts_with("--strategy is missing; one of: "));
  // The same said twice is none.
  EXPECT_EQ(
      Good("strategy: zero3\nfsdp: {fsdp_sharding_strategy: FULL_SHARD}").configuration.options.strategy,
      "full_shard");
}

TEST(ConfigureTest, FlagsReplaceWhatMeansTheSameInAnotherWay) {
  const Effective warm =
      Good("strategy: ddp\nwarmup_ratio: 0.1\nmesh: shard:4\n", {{"warmup_steps", "5"}, {"world_size", "3"}});
  EXPECT_EQ(warm.configuration.run.warmup_ratio, 0);
  EXPECT_EQ(warm.configuration.run.warmup_steps, 5);
  EXPECT_FALSE(warm.configuration.options.mesh);
  EXPECT_EQ(warm.configuration.options.worldSize, 3);
  EXPECT_EQ(Good("strategy: ddp", {{"mesh", "replica:2,shard:4"}}).configuration.options.worldSize, 8);
}

TEST(ConfigureTest, OffloadAddsUp) {
  const std::string zero =
      "strategy: zero3\nzero_optimization:\n  offload_optimizer: {device: cpu}\n  offload_param: {device: "
      "cpu}\n";
  const Effective both = Good(zero + "offload: activations\n");
  EXPECT_TRUE(both.configuration.options.offloadOptimizer);
  EXPECT_TRUE(both.configuration.options.offloadParameters);
  EXPECT_TRUE(both.configuration.options.offloadActivations);
  EXPECT_FALSE(Bad(zero + "offload: none\n").message.empty());
  EXPECT_FALSE(Good(zero, {{"offload", "none"}}).configuration.options.offloadOptimizer);
  // The step is on the host where anyone says so.
  const Effective step = Good(zero + "offload: optimizer:step\n");
  EXPECT_TRUE(step.configuration.options.offloadStep);
  EXPECT_TRUE(step.configuration.options.offloadParameters);
  EXPECT_FALSE(both.configuration.options.offloadStep);
}

TEST(ConfigureTest, TheStepIsOffloadedWithItsState) {
  const auto shown = [](const std::string& words) {
    const Effective effective = Good("strategy: ddp", {{"offload", words}});
    EXPECT_TRUE(effective.configuration.options.offloadOptimizer) << words;
    for (const Setting& setting : Settings())
      if (setting.name == "offload") return setting.value.show(effective.configuration);
    return std::string("no such setting");
  };
  EXPECT_EQ(shown("optimizer"), "optimizer");
  EXPECT_EQ(shown("optimizer:step"), "optimizer:step");
  EXPECT_EQ(shown("optimizer,optimizer:step"), "optimizer:step");
  EXPECT_EQ(shown("activations,Optimizer:Step,parameters"), "optimizer:step,parameters,activations");
  for (const char* wrong : {"optimizer:stop", "parameters:step", "optimizer:", "step"}) {
    Configuration unchanged;
    const std::string mistake = OffloadValue().set(wrong, unchanged);
    EXPECT_EQ(mistake.find(std::string("unknown part to offload '") + wrong + "'"), 0u) << mistake;
    EXPECT_EQ(mistake.find('\n'), std::string::npos);
    EXPECT_FALSE(unchanged.options.offloadOptimizer);
  }
}

TEST(ConfigureTest, SettingsWithoutEffectAreRemarked) {
  EXPECT_EQ(Good("strategy: ddp\nmomentum: 0.9\n").unread,
            std::vector<std::string>{"'momentum' in train.yaml:2 has no effect: optimizer is adamw"});
  EXPECT_EQ(Good("strategy: ddp\n", {{"hysteresis", "2"}, {"min_loss_scale", "1"}}).unread,
            std::vector<std::string>{"--hysteresis, --min-loss-scale have no effect: param_dtype is fp32"});
  EXPECT_EQ(Good("strategy: ddp\nfsdp: {fsdp_state_dict_type: FULL_STATE_DICT}\n").remarks.size(), 1u);
  EXPECT_TRUE(Good("strategy: ddp\n").remarks.empty());
  EXPECT_TRUE(Good("strategy: ddp\n").unread.empty());
  // What a search has chosen, nobody has asked for.
  std::vector<Given> flags = Flags({{"strategy", "ddp"}, {"hysteresis", "2"}});
  flags[1].origin = {.from = Origin::From::kChosen, .key = "ftc tune", .file = {}, .line = 0};
  const std::variant<Effective, Refusal> chosen = Resolved("", flags);
  ASSERT_TRUE(std::holds_alternative<Effective>(chosen));
  EXPECT_TRUE(std::get<Effective>(chosen).unread.empty());
}

TEST(ConfigureTest, AnOptimizersUsualValuesAreItsDefaults) {
  const Effective effective = Good("strategy: ddp\noptim: adafactor\n");
  EXPECT_EQ(effective.configuration.options.weightDecay, 0);
  EXPECT_EQ(Good("strategy: ddp\noptimizer: adafactor\neps2: 1\nscale_parameter: off\n").unread,
            std::vector<std::string>{"'eps2' in train.yaml:3 has no effect: scale_parameter is false"});
}

// A value other than the default for every setting.
const char kEverything[] =
    "strategy: full_shard\nevaluate: on\nsample: on\nwrap: 'names:transformer.h.*,it''s: "
    "#1'\nmin_num_params: "
    "7\npersistence_threshold: 9\n"
    "lora: 'r:3,alpha:0.5,targets:q_proj,*.w?,dropout:0.25,rslora:on,modules_to_save:score'\n"
    "frozen: ['*.wte.*', '- x', 'none']\nkeep_gathered: \"[a-c]?\"\nprefetch: auto\nforward_prefetch: 3\n"
    "limit_all_gathers: 4\nbucket_cap_mb: 0.3\ngather_bucket_mb: 1e-3\nreduce_bucket_mb: 2\nmemory_budget: "
    "8GiB\ntarget: A100-IB\ncluster_ops: 5\ncode: 'ptx,x86-64-v?'\n"
    "param_dtype: bf16\nreduce_dtype: fp16\nbuffer_dtype: bf16\nfp8_recipe: blockwise\nmaster_weights: "
    "off\nstochastic_rounding: "
    "on\nloss_scale: 1024\ninitial_scale_power: 3\n"
    "loss_scale_window: 5\nhysteresis: 2\nmin_loss_scale: 0.5\nremat: budget:1.5GiB\noffload: "
    "optimizer:step,activations\n"
    "optimizer: sgd\nbetas: 0.1,0.2\neps: 3e-7\nweight_decay: 0\nmomentum: 0.9\nnesterov: yes\nadamw_params: "
    "'*.mlp.*'\nbeta2_decay: -0.7\neps2: 0.01\nclip_threshold: 2\nscale_parameter: off\nclip: 0\n"
    "micro_steps: 8\naccumulate: each\naccumulate_dtype: bf16\nbatch: 4\nmesh: replica:2,shard:4\nlr: "
    "0.1\nlr_schedule: cosine\n"
    "warmup_ratio: 0.06\nmin_lr: 1e-5\nsteps: 100\nseed: 9007199254740992\nmax_bad_steps: 7\n"
    "state_dict_type: local\nlr_convention: deepspeed\nwarmup_type: log\nwarmup_min_lr: 1e-3\nglobal_batch: "
    "64\n";

TEST(ConfigureTest, PrintedConfigurationReadsBackToTheSame) {
  for (const Effective& effective :
       {Good("strategy: ddp"), Good(kEverything),
        Good("strategy: ddp\nwarmup_steps: 3", {{"remat", "ops:attention,mlp"}}),
        Good("fsdp: {fsdp_sharding_strategy: FULL_SHARD, fsdp_mixed_precision: bf16}")}) {
    const std::string printed = PrintConfig(effective);
    const Effective again = Good(printed);
    for (const Setting& setting : Settings()) {
      if (!setting.stands_for.empty()) continue;
      EXPECT_EQ(setting.value.show(again.configuration), setting.value.show(effective.configuration))
          << printed;
      EXPECT_EQ(NameOf(again.OriginOf(setting.name)).find('\'' + setting.name), 0u);
    }
    EXPECT_EQ(CompileOptionsOf(again.configuration).runNumbers,
              CompileOptionsOf(effective.configuration).runNumbers);
    EXPECT_EQ(CompileOptionsOf(again.configuration).runTexts,
              CompileOptionsOf(effective.configuration).runTexts);
  }
}

TEST(ConfigureTest, TheExampleAboveSetsEverySetting) {
  const Effective effective = Good(kEverything);
  for (const Setting& setting : Settings()) {
    if (setting.name == "warmup_steps" || !setting.stands_for.empty()) continue;  // excluded by warmup_ratio
    EXPECT_NE(setting.value.show(effective.configuration), setting.value.show(Configuration()))
        << setting.name;
  }
}

TEST(ConfigureTest, PrintedConfigurationSaysWhereValuesComeFrom) {
  const std::string printed = PrintConfig(Good("strategy: zero3\nbf16: {enabled: true}\n", {{"lr", "1"}}));
  for (const char* line : {"strategy: full_shard                     # train.yaml:1\n",
                           "param_dtype: bf16                        # train.yaml:2 (bf16.enabled)\n",
                           "lr: 1                                    # flag --lr\n",
                           "seed: 42                                 # default\n"})
    EXPECT_NE(printed.find(line), printed.npos) << printed;
}

TEST(ConfigureTest, FlagsAreCheckedLikeKeys) {
  EXPECT_EQ(std::get<std::string>(GivenByFlag(SettingIndex("eps"), "-1")),
            "--eps: '-1' is no number of at least 0");
  EXPECT_EQ(std::get<std::string>(GivenByFlag(SettingIndex("strategy"), "fullshard")),
            "--strategy: unknown strategy 'fullshard', did you mean 'full_shard'?");
  EXPECT_EQ(std::get<Given>(GivenByFlag(SettingIndex("memory_budget"), "500MB")).text, "500000000");
}

TEST(ConfigureTest, Sizes) {
  for (const auto& [text, bytes] : std::vector<std::pair<std::string, uint64_t>>{{"0", 0},
                                                                                 {"123", 123},
                                                                                 {"1KiB", 1024},
                                                                                 {"1.5mib", 1572864},
                                                                                 {"8GiB", 8589934592},
                                                                                 {"500MB", 500000000},
                                                                                 {"2 TB", 2000000000000},
                                                                                 {"1e9", 1000000000}})
    EXPECT_EQ(ReadBytes(text), bytes) << text;
  for (const char* text : {"", "GiB", "-1", "-1MB", "1.5", "8G", "1e300GB", "nan", "infMB", "1 2MB", "0x10"})
    EXPECT_FALSE(ReadBytes(text)) << text;
}

}  // namespace
}  // namespace ftc
