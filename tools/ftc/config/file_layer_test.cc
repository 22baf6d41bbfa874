// Every key that train.yaml may have, and every way it may be wrong.
#include "tools/ftc/config/file_layer.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>

#include "tools/ftc/config/configure.h"
#include "tools/ftc/config/foreign_keys.h"
#include "tools/ftc/config/settings.h"

namespace ftc {
namespace {

absl::StatusOr<FileLayer> Layer(const std::string& text, const std::vector<Given>& flags = {}) {
  const absl::StatusOr<TrainYaml> file = ParseTrainYaml(text, "train.yaml");
  if (!file.ok()) return file.status();
  return ReadFileLayer(*file, flags);
}

// What the file makes of a setting, or the error.
std::string SettingOf(const std::string& text, const std::string& setting,
                      const std::vector<Given>& flags = {}) {
  const absl::StatusOr<FileLayer> layer = Layer(text, flags);
  if (!layer.ok()) return std::string(layer.status().message());
  return EffectiveText(setting, layer->given, flags);
}

std::string Mistake(const std::string& text) {
  const absl::StatusOr<FileLayer> layer = Layer(text);
  if (layer.ok()) return "no mistake";
  EXPECT_EQ(layer.status().code(), absl::StatusCode::kInvalidArgument);
  const std::string message(layer.status().message());
  EXPECT_EQ(message.find('\n'), message.npos) << message;
  return message;
}

// "a.b.c" and a value as YAML in block style.
std::string Nested(const std::string& path, const std::string& value) {
  std::string text, indent;
  size_t begin = 0;
  for (size_t dot; (dot = path.find('.', begin)) != path.npos; begin = dot + 1) {
    text += indent + path.substr(begin, dot - begin) + ":\n";
    indent += "  ";
  }
  return text + indent + path.substr(begin) + ": " + value + "\n";
}

Given Flag(const std::string& setting, const std::string& value) {
  return std::get<Given>(GivenByFlag(SettingIndex(setting), value));
}

struct Example {
  std::string key, value, expected;
  std::string setting = "";  // empty: all that the key sets
};

// One or more for every alias of the table.
const std::vector<Example>& AliasExamples() {
  static const auto* const kExamples = new std::vector<Example>{
      {"fsdp.fsdp_sharding_strategy", "FULL_SHARD", "full_shard"},
      {"fsdp.fsdp_sharding_strategy", "2", "shard_grad_op"},
      {"fsdp.fsdp_sharding_strategy", "AUTO", "auto"},
      {"fsdp.fsdp_sharding_strategy", "NO_SHARD", "no_shard"},
      {"fsdp.fsdp_sharding_strategy", "HYBRID_SHARD", "hybrid_shard"},
      {"fsdp.fsdp_sharding_strategy", "_HYBRID_SHARD_ZERO2", "hybrid_shard_zero2"},
      {"fsdp.fsdp_reshard_after_forward", "true", "full_shard"},
      {"fsdp.fsdp_reshard_after_forward", "false", "shard_grad_op"},
      {"zero_optimization.stage", "0", "no_shard"},
      {"zero_optimization.stage", "1", "zero1"},
      {"zero_optimization.stage", "2", "shard_grad_op"},
      {"zero_optimization.stage", "3", "full_shard"},
      {"zero_stage", "3", "full_shard"},
      {"fsdp.fsdp_auto_wrap_policy", "TRANSFORMER_BASED_WRAP", "transformer"},
      {"fsdp.fsdp_auto_wrap_policy", "SIZE_BASED_WRAP", "size"},
      {"fsdp.fsdp_auto_wrap_policy", "size_based_auto_wrap", "size"},
      {"fsdp.fsdp_auto_wrap_policy", "NO_WRAP", "none"},
      {"fsdp.fsdp_auto_wrap_policy", "null", "none"},
      {"fsdp.fsdp_auto_wrap_policy", "[transformer.h.*, Head]", "names:transformer.h.*,Head"},
      {"fsdp.fsdp_min_num_params", "1e8", "100000000"},
      {"zero_optimization.stage3_param_persistence_threshold", "1e5", "100000"},
      {"freeze", "['transformer.wte.*', lm_head]", "transformer.wte.*,lm_head"},
      {"fsdp.fsdp_backward_prefetch", "BACKWARD_PRE", "pre"},
      {"fsdp.fsdp_backward_prefetch", "backward_post", "post"},
      {"fsdp.fsdp_backward_prefetch", "NO_PREFETCH", "none"},
      {"fsdp.fsdp_backward_prefetch", "null", "none"},
      {"fsdp.fsdp_backward_prefetch", "", "none"},
      {"zero_optimization.overlap_comm", "false", "none"},
      {"zero_optimization.overlap_comm", "true", "pre"},
      {"fsdp.fsdp_forward_prefetch", "false", "0"},
      {"fsdp.fsdp_forward_prefetch", "3", "3"},
      {"fsdp.limit_all_gathers", "true", "2"},
      {"fsdp.limit_all_gathers", "false", "0"},
      {"fsdp.limit_all_gathers", "5", "5"},
      {"zero_optimization.stage3_max_live_parameters", "1e9", "2"},
      {"zero_optimization.stage3_max_live_parameters", "0", "1"},
      {"zero_optimization.stage3_max_live_parameters", "1e12", "0"},
      {"fsdp.bucket_cap_mb", "10", "10"},
      {"ddp_bucket_cap_mb", "2.5", "2.5"},
      {"zero_optimization.reduce_bucket_size", "524288", "2"},
      {"zero_optimization.stage3_prefetch_bucket_size", "524288", "2"},
      {"zero_optimization.allgather_bucket_size", "262144", "1"},
      {"fsdp.fsdp_mixed_precision", "bf16", "bf16"},
      {"fsdp.fsdp_mixed_precision", "true", "bf16"},
      {"fsdp.fsdp_mixed_precision", "no", "no"},
      {"bf16.enabled", "true", "bf16"},
      {"bf16.enabled", "false", "no"},
      {"fp16.enabled", "true", "fp16"},
      {"fp16.enabled", "auto", "no"},
      {"bf16", "true", "bf16"},
      {"fp16", "true", "fp16"},
      {"fsdp.fsdp_param_dtype", "torch.bfloat16", "bf16"},
      {"fsdp.fsdp_mixed_precision.param_dtype", "BF16", "bf16"},
      {"fsdp.fsdp_reduce_dtype", "float16", "fp16"},
      {"fsdp.fsdp_mixed_precision.reduce_dtype", "bf16", "bf16"},
      {"communication_data_type", "fp16", "fp16"},
      {"fsdp.fsdp_buffer_dtype", "bfloat16", "bf16"},
      {"fsdp.fsdp_mixed_precision.buffer_dtype", "fp32", "fp32"},
      {"fp16.loss_scale", "0", "dynamic"},
      {"fp16.loss_scale", "128", "128"},
      {"fp16.initial_scale_power", "12", "12"},
      {"fp16.loss_scale_window", "1000", "1000"},
      {"fp16.hysteresis", "2", "2"},
      {"fp16.min_loss_scale", "1", "1"},
      {"fsdp.activation_checkpointing", "true", "every_n:1"},
      {"fsdp.activation_checkpointing.enabled", "true", "every_n:1"},
      {"fsdp.activation_checkpointing.enabled", "false", "none"},
      {"fsdp.activation_checkpointing.checkpoint_every_n_layers", "2", "every_n:2"},
      {"activation_checkpointing", "false", "none"},
      {"activation_checkpointing.enabled", "true", "every_n:1"},
      {"activation_checkpointing.checkpoint_every_n_layers", "4", "every_n:4"},
      {"activation_checkpointing.number_checkpoints", "4", "segments:4"},
      {"activation_checkpointing.number_checkpoints", "null", "none"},
      {"gradient_checkpointing", "true", "every_n:1"},
      {"fsdp.fsdp_cpu_offload", "true", "optimizer,parameters"},
      {"fsdp.fsdp_cpu_offload", "false", "none"},
      {"fsdp.fsdp_offload_params", "true", "optimizer,parameters"},
      {"zero_optimization.offload_optimizer.device", "cpu", "optimizer"},
      {"zero_optimization.offload_optimizer.device", "none", "none"},
      {"zero_optimization.offload_param.device", "cpu", "parameters"},
      {"offload_optimizer_device", "cpu", "optimizer"},
      {"offload_param_device", "none", "none"},
      {"activation_checkpointing.cpu_checkpointing", "true", "activations"},
      {"optimizer.type", "AdamW", "adamw"},
      {"optimizer.type", "Adam", "adamw"},
      {"optimizer.type", "SGD", "sgd"},
      {"optimizer.type", "Lion", "lion"},
      {"optim", "adamw_torch", "adamw"},
      {"optimizer.params.betas", "[0.8, 0.99]", "0.8,0.99"},
      {"adam_beta1", "0.7", "0.7,0.95"},
      {"adam_beta2", "0.999", "0.9,0.999"},
      {"optimizer.params.eps", "1e-6", "1e-06"},
      {"adam_epsilon", "1e-5", "1e-05"},
      {"optimizer.params.weight_decay", "0.01", "0.01"},
      {"optimizer.params.momentum", "0.9", "0.9"},
      {"optimizer.params.nesterov", "true", "true"},
      {"optimizer.stochastic_rounding", "true", "true"},
      {"optimizer.params.stochastic_rounding", "true", "true"},
      {"gradient_clipping", "0.5", "0.5"},
      {"max_grad_norm", "auto", "1"},
      {"gradient_accumulation_steps", "8", "8"},
      {"data_types.grad_accum_dtype", "bf16", "bf16"},
      {"train_micro_batch_size_per_gpu", "4", "4"},
      {"per_device_train_batch_size", "4", "4"},
      {"num_processes", "4", "4"},
      {"num_processes", "-1", "1"},
      {"train_batch_size", "64", "64"},
      {"zero_optimization.max_live_parameters", "0", "1"},
      {"zero_optimization.cpu_offload", "true", "optimizer"},
      {"zero_optimization.cpu_offload_param", "true", "parameters"},
      {"fsdp.fsdp_backward_prefetch_policy", "BACKWARD_POST", "post"},
      {"fsdp.fsdp_reshard_after_forward", "FULL_SHARD", "full_shard"},
      {"learning_rate", "1e-4", "0.0001"},
      {"optimizer.params.lr", "0.002", "0.002"},
      {"scheduler.params.warmup_max_lr", "0.01", "0.01"},
      {"lr_scheduler_type", "cosine", "cosine"},
      {"lr_scheduler_type", "constant_with_warmup", "constant"},
      {"scheduler.type", "WarmupLR", "constant", "lr_schedule"},
      {"scheduler.type", "WarmupDecayLR", "linear", "lr_schedule"},
      {"scheduler.type", "WarmupCosineLR", "cosine", "lr_schedule"},
      {"scheduler.type", "WarmupCosineLR", "deepspeed", "lr_convention"},
      {"scheduler.params.warmup_type", "log", "log"},
      {"scheduler.params.warmup_min_lr", "1e-5", "1e-05", "warmup_min_lr"},
      {"scheduler.params.warmup_min_ratio", "0.5", "0.00015"},
      {"scheduler.params.warmup_num_steps", "100", "100"},
      {"scheduler.params.cos_min_ratio", "0.5", "0.00015"},
      {"scheduler.params.total_num_steps", "1000", "1000"},
      {"max_steps", "500", "500"},
      {"max_steps", "-1", "0"},
      {"fsdp.fsdp_state_dict_type", "SHARDED_STATE_DICT", "sharded_state_dict"},
  };
  return *kExamples;
}

TEST(FileLayerTest, EveryAliasHasAnExampleAndMeansIt) {
  std::multimap<std::string, std::string> settings;
  std::set<std::string> without;
  for (const Setting& setting : Settings()) {
    for (const Alias& alias : setting.aliases) {
      settings.emplace(alias.key, setting.name);
      without.insert(alias.key);
    }
  }
  for (const Example& example : AliasExamples()) {
    without.erase(example.key);
    const auto [begin, end] = settings.equal_range(example.key);
    for (auto row = begin; row != end; ++row) {
      if (!example.setting.empty() && example.setting != row->second) continue;
      EXPECT_EQ(SettingOf(Nested(example.key, example.value), row->second), example.expected)
          << example.key << ": " << example.value;
    }
  }
  EXPECT_TRUE(without.empty()) << *without.begin();
}

TEST(FileLayerTest, AFlagWinsOverEveryAlias) {
  for (const Example& example : AliasExamples()) {
    for (const Setting& setting : Settings()) {
      if (setting.name == "mixed_precision") continue;  // it is three dtypes; see configure_test.cc
      const auto has = [&](const Alias& alias) { return alias.key == example.key; };
      if (std::none_of(setting.aliases.begin(), setting.aliases.end(), has)) continue;
      const std::string wanted = setting.name == "strategy" ? "zero1" : setting.value.show(Configuration());
      EXPECT_EQ(SettingOf(Nested(example.key, example.value), setting.name, {Flag(setting.name, wanted)}),
                wanted)
          << example.key;
    }
  }
}

TEST(FileLayerTest, EveryAliasRefusesNonsenseAtItsPlace) {
  for (const Setting& setting : Settings()) {
    for (const Alias& alias : setting.aliases) {
      const size_t depth = std::count(alias.key.begin(), alias.key.end(), '.');
      const std::string place = "train.yaml:" + std::to_string(depth + 2) + ":";
      const std::string mistake = Mistake("# one\n" + Nested(alias.key, "'#nonsense,#,'"));
      EXPECT_TRUE(mistake.starts_with(place)) << mistake;
      EXPECT_NE(mistake.find("'" + alias.key + "'"), mistake.npos) << mistake;
    }
  }
}

TEST(FileLayerTest, EverySettingReadsItsOwnDefault) {
  for (const Setting& setting : Settings()) {
    const std::string shown = setting.value.show(Configuration());
    if (shown.empty()) continue;  // strategy
    EXPECT_EQ(SettingOf(setting.name + ": " + shown, setting.name), shown);
  }
}

// A key of a section's row.
std::string ExampleOf(const ForeignKey& key) {
  return key.key.ends_with("*") ? key.key.substr(0, key.key.size() - 1) + "something" : key.key;
}

int CountOf(const std::vector<std::string>& lines, std::string_view word) {
  return static_cast<int>(std::count_if(
      lines.begin(), lines.end(), [&](const std::string& line) { return line.find(word) != line.npos; }));
}

TEST(FileLayerTest, EveryForeignKeyIsPassedOverOrRefused) {
  using Use = ForeignKey::Use;
  for (const ForeignKey& key : ForeignKeys()) {
    if (key.use == Use::kElsewhere) continue;
    const absl::StatusOr<FileLayer> layer = Layer(Nested(ExampleOf(key), "17"));
    if (key.use == Use::kRefused) {
      const std::string message(layer.status().message());
      EXPECT_NE(message.find(key.reason), message.npos) << key.key << ": " << message;
      EXPECT_TRUE(message.starts_with("train.yaml:")) << message;
    } else {
      ASSERT_TRUE(layer.ok()) << layer.status();
      EXPECT_EQ(CountOf(layer->remarks, "no effect"), key.use == Use::kSilent ? 0 : 1) << key.key;
    }
  }
}

TEST(FileLayerTest, ForeignKeysAtRestSayNothing) {
  for (const ForeignKey& key : ForeignKeys()) {
    if (key.key == "distributed_type") continue;
    std::vector<std::string> values = key.at_rest;
    for (const char* value : {"null", "none", "'no'", "[]", "''", "auto"}) values.emplace_back(value);
    const bool false_asks = std::find(values.begin(), values.end(), "true") != values.end();
    if (!false_asks) values.emplace_back("false");
    for (const std::string& value : values) {
      if (false_asks && value == "'no'") continue;
      const absl::StatusOr<FileLayer> layer = Layer(Nested(ExampleOf(key), value));
      ASSERT_TRUE(layer.ok()) << layer.status();
      EXPECT_EQ(CountOf(layer->remarks, "no effect"), 0) << key.key << ": " << value;
    }
  }
}

TEST(FileLayerTest, SectionsOfOthersAreNamedOnce) {
  const absl::StatusOr<FileLayer> layer = Layer(
      "tensorboard:\n  enabled: true\n  output_path: logs\nwandb: {enabled: false, project: x}\n"
      "monitor_config: {tag: a, csv_monitor: {enabled: true}}\nwall_clock_breakdown: true\n"
      "flops_profiler: {enabled: true, profile_step: 3, output_file: null}\n_comment: a word\n"
      "fsdp: {_comment2: [[1]]}\n");
  ASSERT_TRUE(layer.ok()) << layer.status();
  EXPECT_EQ(layer->remarks, (std::vector<std::string>{
                                "'tensorboard', 'monitor_config' in train.yaml:2,5 have no effect: ftexec "
                                "--metrics writes it",
                                "'wall_clock_breakdown', 'flops_profiler' in train.yaml:6,7 have no effect: "
                                "ftexec --trace shows it"}));
}

TEST(FileLayerTest, WhatIsNotThereAsksForNothing) {
  EXPECT_EQ(SettingOf("strategy: ddp\ngradient_clipping: null\noptimizer: null\n", "clip"), "1");
  EXPECT_EQ(SettingOf("frozen: []\n", "frozen"), "none");
  EXPECT_EQ(SettingOf("freeze: []\n", "frozen"), "none");
  EXPECT_EQ(SettingOf("fsdp: {fsdp_auto_wrap_policy: ''}\n", "wrap"), "transformer");
  EXPECT_EQ(Mistake("lr: ''"), "train.yaml:1:5: 'lr': has no value");
}

TEST(FileLayerTest, NumbersThatKernelsCannotHoldAreRefused) {
  EXPECT_EQ(Mistake("clip: 1e39"), "train.yaml:1:7: 'clip': '1e39' is above 3.40282e+38");
  EXPECT_EQ(SettingOf("clip: 3.4e38\n", "clip"), "3.4e+38");
  // 1e-50 would be 0, and one over 1e-40 infinite.
  for (const char* scale : {"1e-50", "1e-40", "1.1e-38", "1e31", "1e39", "-1", "nan", "often"})
    EXPECT_EQ(Mistake(std::string("loss_scale: ") + scale),
              std::string("train.yaml:1:13: 'loss_scale': '") + scale +
                  "' is neither dynamic (or 0) nor a number from 1.2e-38 to 1e+30");
  for (const char* scale : {"1.2e-38", "1e+30"})
    EXPECT_EQ(SettingOf(std::string("loss_scale: ") + scale + "\n", "loss_scale"), scale);
  EXPECT_EQ(SettingOf("loss_scale: -0.0\n", "loss_scale"), "dynamic");
}

TEST(FileLayerTest, SectionsMayBeNamedInOtherWays) {
  for (const char* text :
       {"fsdp:\n  fsdp_sharding_strategy: full_shard\n",
        "fsdp_config:\n  fsdp_sharding_strategy: FULL_SHARD\n", "fsdp: {sharding_strategy: full-shard}\n",
        "fsdp_sharding_strategy: Full_Shard\n", "strategy: zero3\n",
        "deepspeed_config: {zero_optimization: {stage: 3}}\n", "zero_optimization.stage: 3\n",
        "zero_optimization: &z {stage: 3}\ndeepspeed: {zero_optimization: *z}\n"})
    EXPECT_EQ(SettingOf(text, "strategy"), "full_shard") << text;
}

TEST(FileLayerTest, MergeKeys) {
  EXPECT_EQ(SettingOf("fsdp: &f {fsdp_param_dtype: bf16, fsdp_reduce_dtype: bf16}\n"
                      "fsdp_config: {<<: *f, fsdp_reduce_dtype: bf16}\n",
                      "param_dtype"),
            "bf16");
  EXPECT_NE(Mistake("fsdp: {<<: 3}").find("merges maps alone"), std::string::npos);
}

TEST(FileLayerTest, SizesInElementsFollowTheDtypes) {
  const std::string zero =
      "zero_optimization: {reduce_bucket_size: 5.24288e5, stage3_prefetch_bucket_size: 524288}\n";
  EXPECT_EQ(SettingOf(zero, "bucket_cap_mb"), "2");
  EXPECT_EQ(SettingOf(zero + "bf16: {enabled: true}\n", "bucket_cap_mb"), "1");
  EXPECT_EQ(SettingOf(zero + "bf16: {enabled: true}\n", "gather_bucket_mb"), "1");
  EXPECT_EQ(SettingOf(zero + "param_dtype: bf16\n", "bucket_cap_mb"), "2");
  // The flags' dtype counts.
  EXPECT_EQ(SettingOf(zero + "bf16: {enabled: true}\n", "bucket_cap_mb", {Flag("mixed_precision", "no")}),
            "2");
}

TEST(FileLayerTest, KeysThatAreReadTogether) {
  EXPECT_EQ(SettingOf("adam_beta1: 0.8\nadam_beta2: 0.9\n", "betas"), "0.8,0.9");
  EXPECT_EQ(
      SettingOf("fsdp: {activation_checkpointing: {enabled: true, checkpoint_every_n_layers: 3}}", "remat"),
      "every_n:3");
  EXPECT_EQ(
      SettingOf("fsdp: {activation_checkpointing: {checkpoint_every_n_layers: 3, enabled: false}}", "remat"),
      "none");
  EXPECT_EQ(SettingOf("optimizer: {type: Adam, params: {adam_w_mode: false}}", "optimizer"), "adam");
  EXPECT_EQ(SettingOf("optimizer: adam", "optimizer"), "adam");
  EXPECT_EQ(SettingOf("lr: 0.01\nscheduler: {params: {cos_min_ratio: 0.5}}", "min_lr"), "0.005");
  EXPECT_EQ(SettingOf("fp16: {enabled: false, initial_scale_power: 4}", "initial_scale_power"), "16");
  EXPECT_EQ(SettingOf("zero_optimization:\n  offload_optimizer: {device: cpu, pin_memory: true}\n"
                      "  offload_param: {device: CPU}\noffload: activations",
                      "offload"),
            "optimizer,parameters,activations");
  EXPECT_EQ(SettingOf("bf16: {enabled: true}\nfsdp_reduce_dtype: fp32", "reduce_dtype"), "fp32");
}

TEST(FileLayerTest, UnknownKeys) {
  EXPECT_EQ(Mistake("strategy: full_shard\nfsdp:\n  fsdp_min_num_params: 3\n  fsdp_shardng_strategy: x\n"),
            "train.yaml:4: unknown key 'fsdp.fsdp_shardng_strategy'; did you mean 'fsdp_sharding_strategy'?");
  EXPECT_EQ(Mistake("\n\nfsdpp:\n  fsdp_sharding_strategy: x\n"),
            "train.yaml:3: unknown key 'fsdpp'; did you mean 'fsdp'?");
  EXPECT_EQ(Mistake("warmupsteps: 3"),
            "train.yaml:1: unknown key 'warmupsteps'; did you mean 'warmup_steps'?");
  EXPECT_EQ(Mistake("fp16: {los_scale: 4}"),
            "train.yaml:1: unknown key 'fp16.los_scale'; did you mean 'loss_scale'?");
  EXPECT_EQ(Mistake("stage: 3"),
            "train.yaml:1: unknown key 'stage'; did you mean 'zero_optimization.stage'?");
  EXPECT_NE(Mistake("qqqqqqqq: 3").find("--print-config"), std::string::npos);
}

TEST(FileLayerTest, WrongValuesComeWithLineAndColumn) {
  for (const auto& [text, expected] : std::vector<std::pair<std::string, std::string>>{
           {"seed: 4\nlr: fast\n", "train.yaml:2:5: 'lr': 'fast' is no number of at least 0"},
           {"lr: -1", "train.yaml:1:5: 'lr': '-1' is no number of at least 0"},
           {"lr: .nan", "train.yaml:1:5: 'lr': '.nan' is no number of at least 0"},
           {"lr: 1e400", "train.yaml:1:5: 'lr': '1e400' is no number of at least 0"},
           {"seed: 99999999999999999999", "train.yaml:1:7: 'seed': '99999999999999999999' is no integer"},
           {"seed: 1.5", "train.yaml:1:7: 'seed': '1.5' is no integer"},
           {"micro_steps: 0", "train.yaml:1:14: 'micro_steps': '0' is not in the range 1 to 1048576"},
           {"seed: [1, 2]", "train.yaml:1:7: 'seed': wants one value, not a list"},
           {"seed: {a: 1}", "train.yaml:1:7: 'seed': wants a value, not keys of its own"},
           {"fsdp: 3", "train.yaml:1:7: 'fsdp': is a section; '3' is no key of it"},
           {"seed:\nlr: 3", "train.yaml:1:1: 'seed': 'null' is no integer"},
           {"fsdp: {fsdp_cpu_offload: maybe}",
            "train.yaml:1:26: 'fsdp.fsdp_cpu_offload': 'maybe' is neither true nor false"},
           {"fsdp: {fsdp_sharding_strategy: fullshard}",
            "train.yaml:1:32: 'fsdp.fsdp_sharding_strategy': unknown strategy 'fullshard', did you mean "
            "'full_shard'?"},
           {"target: cpuu", "train.yaml:1:9: 'target': unknown target 'cpuu', did you mean 'cpu'?"},
           {"mesh: replica:0", ""},
           {"remat: every_n",
            "train.yaml:1:8: 'remat': recomputation policy 'every_n:': expected every_n:N, N layers in a "
            "group"},
           {"remat: ops:attention,mpl",
            "train.yaml:1:8: 'remat': unknown class of ops 'mpl', did you mean 'mlp'?"},
           {"remat: budget:0", ""},
           {"remat: budget:8Gib", "no mistake"},
           {"remat: budget:8Gi", "train.yaml:1:8: 'remat': '8Gi' is no size in bytes, such as 8GiB or 500MB"},
           {"betas: 0.9",
            "train.yaml:1:8: 'betas': wants two numbers in [0, 1), such as 0.9,0.95, not '0.9'"},
           {"frozen: [a, '']", "train.yaml:1:9: 'frozen': wants a list of words"},
           {"datasets:\n- {path: a}\n",
            "train.yaml:1: unknown key 'datasets'; ftc compile --print-config shows the keys there are"},
           {"a: [x, x]\nseed: [[1]]\n", "train.yaml:2:7: 'seed': wants a list of words"},
           {"param_dtype: fp8",
            "train.yaml:1:14: 'param_dtype': fp8 is of products alone: bf16, and fp8_recipe: tensorwise"},
           {"fsdp: {fsdp_param_dtype: float8_e4m3fn}", ""},
           {"zero_optimization: {stage: 4}", ""}}) {
    const std::string mistake = Mistake(text);
    if (expected.empty()) {
      EXPECT_TRUE(mistake.starts_with("train.yaml:1:")) << mistake;
    } else {
      EXPECT_EQ(mistake, expected);
    }
  }
}

TEST(FileLayerTest, EmptyFilesAndSections) {
  for (const char* text : {"", "# nothing\n", "---\n", "fsdp:\n", "\xEF\xBB\xBFseed: 42\n"})
    EXPECT_EQ(SettingOf(text, "seed"), "42") << text;
}

}  // namespace
}  // namespace ftc
