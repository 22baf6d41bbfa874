// Whole files as Accelerate, DeepSpeed and Hugging Face's examples have them, in shape.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "runtime/base/exit_status.h"
#include "runtime/base/testing/temp_folder.h"
#include "tools/ftc/config/configure.h"
#include "tools/ftc/config/settings.h"

namespace ftc {
namespace {

using Flag = std::pair<std::string, std::string>;

// A configuration in a folder of its own.
class Folder {
 public:
  Folder& Write(const std::string& name, const std::string& text) {
    const std::filesystem::path path(folder_.Path(name));
    std::filesystem::create_directories(path.parent_path());
    std::ofstream(path) << text;
    return *this;
  }

  // Not ok, or the refusal of settings that do not go together.
  absl::StatusOr<Effective> Read(const std::vector<Flag>& flags = {}) const {
    std::vector<Given> given;
    for (const auto& [name, value] : flags)
      given.push_back(std::get<Given>(GivenByFlag(SettingIndex(name), value)));
    absl::StatusOr<std::variant<Effective, Refusal>> made = Configure(folder_.Path("c.yaml"), given);
    if (!made.ok()) return made.status();
    if (const auto* refusal = std::get_if<Refusal>(&*made))
      return absl::InvalidArgumentError(refusal->message);
    return std::get<Effective>(*made);
  }

 private:
  ft::TempFolder folder_;
};

// What the file makes of a setting, or the error.
std::string Value(const Folder& folder, const std::string& setting, const std::vector<Flag>& flags = {}) {
  const absl::StatusOr<Effective> effective = folder.Read(flags);
  if (!effective.ok()) return std::string(effective.status().message());
  return Settings()[SettingIndex(setting)].value.show(effective->configuration);
}

std::string Value(const std::string& text, const std::string& setting, const std::vector<Flag>& flags = {}) {
  return Value(Folder().Write("c.yaml", text), setting, flags);
}

// All remarks, with the folder's name left out.
std::string Remarks(const std::string& text, const std::vector<Flag>& flags = {}) {
  const absl::StatusOr<Effective> effective = Folder().Write("c.yaml", text).Read(flags);
  if (!effective.ok()) return std::string(effective.status().message());
  std::string all;
  for (const auto* lines : {&effective->remarks, &effective->unread})
    for (const std::string& line : *lines) all += line + "\n";
  for (size_t at; (at = all.find("/")) != all.npos && all.find("c.yaml", at) != all.npos;)
    all.erase(at, all.find("c.yaml", at) - at);
  return all;
}

#define EXPECT_HAS(text, word) EXPECT_NE((text).find(word), std::string::npos) << (text)
#define EXPECT_HAS_NOT(text, word) EXPECT_EQ((text).find(word), std::string::npos) << (text)

// What `accelerate config` writes into every file, at rest.
constexpr char kRest[] =
    "compute_environment: LOCAL_MACHINE\ndebug: false\ndowncast_bf16: 'no'\nenable_cpu_affinity: false\n"
    "machine_rank: 0\nmain_process_ip: null\nmain_training_function: main\nnum_machines: 1\n"
    "rdzv_backend: static\nsame_network: true\ntpu_env: []\ntpu_use_cluster: false\ntpu_use_sudo: false\n"
    "use_cpu: false\nmegatron_lm_config: {}\ndynamo_config: {}\ncommands: null\n";

TEST(AccelerateFilesTest, KeysAtRestSayNothing) {
  const std::string text = kRest;
  EXPECT_EQ(Value(text + "distributed_type: FSDP\n", "strategy"), "full_shard");
  EXPECT_HAS_NOT(Remarks(text + "distributed_type: FSDP\n"), "no effect");
}

TEST(AccelerateFilesTest, DistributedTypes) {
  for (const char* type : {"MULTI_GPU", "MULTI_CPU", "MULTI_XPU", "'NO'", "NO"})
    EXPECT_EQ(Value(std::string("distributed_type: ") + type, "strategy"), "no_shard") << type;
  EXPECT_EQ(Value("distributed_type: FSDP\nfsdp_config: {fsdp_version: 2}\n", "strategy"), "full_shard");
  EXPECT_EQ(Value("distributed_type: FSDP\nfsdp_config: {fsdp_reshard_after_forward: false}\n", "strategy"),
            "shard_grad_op");
  EXPECT_EQ(Value("distributed_type: DEEPSPEED\ndeepspeed_config: {zero_stage: 3}\n", "strategy"),
            "full_shard");
  // The stage of Accelerate, which makes a DeepSpeed file where none is named.
  EXPECT_EQ(Value("distributed_type: DEEPSPEED\n", "strategy"), "shard_grad_op");
  EXPECT_EQ(Value("distributed_type: FSDP\n", "strategy", {{"strategy", "zero1"}}), "zero1");
  EXPECT_HAS(Value("distributed_type: MULTI_GPU\nstrategy: full_shard\n", "strategy"), "contradict");
}

TEST(AccelerateFilesTest, WhatIsAskedForAndNotThere) {
  for (const auto& [text, reason] : std::vector<std::pair<std::string, std::string>>{
           {"distributed_type: MEGATRON_LM\n", "Megatron-LM"},
           {"distributed_type: XLA\n", "TPU"},
           {"distributed_type: FSPD\n", "did you mean 'FSDP'"},
           {"compute_environment: AMAZON_SAGEMAKER\n", "SageMaker"},
           {"distributed_type: NO\niam_role_name: x\n", "SageMaker"},
           {"distributed_type: FSDP\ntpu_use_cluster: true\n", "TPU"},
           {"fp8: {enabled: true}\n", "see mixed_precision: fp8, and fp8_recipe"},
           {"distributed_type: FSDP\nmegatron_lm_config: {megatron_lm_tp_degree: 2}\n", "Megatron-LM"},
           {"distributed_type: FSDP\nfsdp_config: {fsdp_ignored_modules: '.*head'}\n", "sharded"},
           {"parallelism_config: {parallelism_config_tp_size: 2}\n", "tensor parallelism"},
           {"parallelism_config: {parallelism_config_cp_size: 8}\n", "context parallelism"},
           {"parallelism_config: {parallelism_config_sp_size: 2}\n", "sequence parallelism"},
           {"tensor_parallel: {autotp_size: 4}\n", "tensor parallelism"},
           {"expert_parallel: {enabled: true, ep_size: 8}\n", "expert parallelism"},
           {"pipeline: {stages: 4}\n", "pipeline parallelism"},
           {"optimizer: {type: Lamb}\n", "Lamb"},
           {"optimizer: {type: AdamW, params: {amsgrad: true}}\n", "no such variant"},
           {"optimizer: {type: AdamW, params: {bias_correction: false}}\n", "bias"},
           {"prescale_gradients: true\n", "mean over ranks"},
           {"gradient_predivide_factor: 2.0\n", "mean over ranks"},
           {"gradient_allreduce_op: sum\n", "mean over ranks"},
           {"data_types: {grad_accum_dtype: int3}\n", "int3"},
           {"zero_optimization: {stage: 3, zero_quantized_weights: true}\n", "quantized"},
           {"zero_optimization: {stage: 3, offload_optimizer: {device: nvme}}\n", "nvme"},
           {"fp16: {enabled: true, consecutive_hysteresis: true}\n", "hysteresis"},
           {"progressive_layer_drop: {enabled: true, theta: 0.5}\n", "not supported"},
           {"compression_training: {weight_quantization: {shared_parameters: {enabled: true}}}\n",
            "not supported"},
           {"scheduler: {type: OneCycle, params: {cycle_min_lr: 1e-4, cycle_max_lr: 1e-3}}\n", "OneCycle"},
           {"scheduler: {type: LRRangeTest}\n", "LRRangeTest"},
           {"scheduler: {type: WarmupLR, params: {cos_min_ratio: 0.1}}\n", "WarmupLR has no such parameter"},
           {"scheduler: {type: WarmupCosineLR, params: {warmup_max_lr: 0.1}}\n", "no such parameter"},
           {"scheduler: {type: WarmupLR, params: {warmup_type: cube}}\n", "cube"}}) {
    const std::string message = Value(text, "strategy", {{"strategy", "ddp"}});
    EXPECT_HAS(message, reason) << text;
    EXPECT_HAS(message, "c.yaml:") << text;
  }
}

TEST(AccelerateFilesTest, SizesOfOneAndDisabledFeaturesAreInert) {
  for (const char* text :
       {"parallelism_config: {parallelism_config_tp_size: 1, parallelism_config_cp_size: 1,\n"
        "  parallelism_config_dp_replicate_size: 1, parallelism_config_sp_backend: deepspeed}\n",
        "tensor_parallel: {autotp_size: 1}\n", "elasticity: {enabled: false, max_train_batch_size: 9}\n",
        "compression_training: {weight_quantization: {shared_parameters: {enabled: false, groups: 3}}}\n",
        "mixed_precision: 'no'\nfp8_config: {backend: null}\n", "fp8: {enabled: false}\n",
        "gradient_predivide_factor: 1.0\n",
        "data_types: {grad_accum_dtype: fp32}\ngradient_accumulation_steps: 2\n",
        "data_types: {grad_accum_dtype: bf16}\nbf16: {enabled: true}\ngradient_accumulation_steps: 2\n",
        "zero_optimization: {zero_quantized_weights: false}\n"})
    EXPECT_EQ(Value(text, "strategy", {{"strategy", "zero3"}}), "full_shard") << text;
}

TEST(AccelerateFilesTest, SectionsOfAnotherTypeAreLeftOut) {
  const std::string text =
      "distributed_type: 'NO'\nfsdp_config:\n  fsdp_offload_params: true\n  fsdp_sync_module_states: false\n"
      "deepspeed_config:\n  deepspeed_config_file: not/there.json\n  gradient_accumulation_steps: 4\n";
  EXPECT_EQ(Value(text, "offload"), "none");
  EXPECT_EQ(Value(text, "micro_steps"), "1");
  EXPECT_HAS(Remarks(text),
             "'fsdp_config', 'deepspeed_config' in c.yaml:3,6 have no effect: "
             "distributed_type is another");
}

TEST(AccelerateFilesTest, ReplicasOfShards) {
  const std::string sizes =
      "parallelism_config:\n  parallelism_config_dp_replicate_size: 2\n  parallelism_config_dp_shard_size: "
      "4\n";
  EXPECT_EQ(Value("distributed_type: FSDP\n" + sizes, "strategy"), "hybrid_shard");
  EXPECT_EQ(Value("distributed_type: FSDP\n" + sizes, "mesh"), "replica:2,shard:4");
  EXPECT_EQ(Value("distributed_type: FSDP\nnum_processes: 8\n" + sizes, "world_size"), "8");
  EXPECT_HAS(Value("distributed_type: FSDP\nnum_processes: 6\n" + sizes, "world_size"), "contradict");
  EXPECT_EQ(
      Value("distributed_type: FSDP\nfsdp_config: {fsdp_reshard_after_forward: false}\n" + sizes, "strategy"),
      "hybrid_shard_zero2");
  EXPECT_HAS(Value("distributed_type: MULTI_GPU\n" + sizes, "strategy"), "shards nothing");
  EXPECT_EQ(Value("parallelism_config: {dp_replicate_size: 4}\n", "strategy"), "no_shard");
  EXPECT_HAS(Remarks("distributed_type: FSDP\n" + sizes), "ftexec --mesh=replica:2,shard:4");
}

TEST(AccelerateFilesTest, AutocastLeavesGradientsInFp32) {
  EXPECT_EQ(Value("distributed_type: MULTI_GPU\nmixed_precision: bf16\n", "reduce_dtype"), "fp32");
  EXPECT_EQ(Value("distributed_type: MULTI_GPU\nmixed_precision: bf16\n", "param_dtype"), "bf16");
  EXPECT_EQ(Value("distributed_type: FSDP\nmixed_precision: bf16\n", "reduce_dtype"), "bf16");
  EXPECT_EQ(Value("distributed_type: MULTI_GPU\nmixed_precision: bf16\n", "reduce_dtype",
                  {{"mixed_precision", "fp16"}}),
            "fp16");
}

TEST(AccelerateFilesTest, UnknownKeys) {
  EXPECT_HAS(Value("distributed_type: FSDP\ninvalid_key: a\n", "strategy"),
             "c.yaml:2: unknown key 'invalid_key'");
  EXPECT_HAS(Value("distributed_type: FSDP\nnum_proceses: false\n", "strategy"),
             "did you mean 'num_processes'");
  // What a newer version adds and does not use.
  EXPECT_EQ(Value("distributed_type: FSDP\nquantum_config: {}\nwarp_drive: false\n", "strategy"),
            "full_shard");
  EXPECT_HAS(Remarks("distributed_type: FSDP\nwarp_drive: false\n"),
             "'warp_drive' in c.yaml:2 has no effect");
  EXPECT_HAS(Value("distributed_type: FSDP\nquantum_config: {a: 1}\n", "strategy"),
             "unknown key 'quantum_config'");
  EXPECT_HAS(Value("strategy: ddp\nwarp_drive: false\n", "strategy"), "unknown key 'warp_drive'");
}

constexpr char kZero3[] = "{\"zero_optimization\": {\"stage\": 3}, \"gradient_clipping\": 0.5}\n";

TEST(DeepSpeedFilesTest, ANamedFileIsReadToo) {
  const std::string text =
      "distributed_type: DEEPSPEED\ndeepspeed_config:\n  deepspeed_config_file: ds/z3.json\n";
  Folder folder;
  folder.Write("c.yaml", text);
  const absl::Status missing = folder.Read().status();
  EXPECT_EQ(ft::ExitStatus(missing), ft::kExitIo);
  EXPECT_HAS(std::string(missing.message()), "c.yaml:3");
  folder.Write("ds/z3.json", kZero3);
  EXPECT_EQ(Value(folder, "strategy"), "full_shard");
  EXPECT_EQ(Value(folder, "clip"), "0.5");
  EXPECT_EQ(NameOf(folder.Read()->OriginOf("clip")).substr(0, 22), "'gradient_clipping' in");
  EXPECT_HAS(folder.Read()->OriginOf("clip").file, "ds/z3.json");
  folder.Write("ds/z3.json", "{\"zero_optimization\": {\"stge\": 3}}");
  EXPECT_HAS(Value(folder, "strategy"), "ds/z3.json:1: unknown key 'zero_optimization.stge'");
  folder.Write("ds/z3.json", "{\"deepspeed_config_file\": \"x\"}");
  EXPECT_HAS(Value(folder, "strategy"), "names another one");
  folder.Write("c.yaml", text + "mixed_precision: bf16\n")
      .Write("ds/z3.json", "{\"fp16\": {\"enabled\": true}}");
  EXPECT_HAS(Value(folder, "strategy"), "contradict");
  // Hugging Face's training arguments.
  folder.Write("c.yaml", "deepspeed: ds/z3.json\nlearning_rate: 1e-4\n").Write("ds/z3.json", kZero3);
  EXPECT_EQ(Value(folder, "strategy"), "full_shard");
  folder.Write("c.yaml", "deepspeed: ds/z3.json\ndeepspeed_config_file: ds/z3.json\n");
  EXPECT_HAS(Value(folder, "strategy"), "second DeepSpeed file");
}

TEST(DeepSpeedFilesTest, JsonAsItIsWritten) {
  EXPECT_EQ(Value("{\n\t\"zero_optimization\": {\n\t\t\"stage\": 2,\n\t\t\"reduce_bucket_size\": 5e8\n\t},\n"
                  "\t\"train_batch_size\": 32,\n\t\"_comment\": \"a: b, c\"\n}\n",
                  "strategy"),
            "shard_grad_op");
}

TEST(DeepSpeedFilesTest, AbsentKeysHaveItsDefaults) {
  const std::string adam = "zero_optimization: {stage: 2}\noptimizer: {type: AdamW, params: {}}\n";
  for (const auto& [setting, value] : std::vector<Flag>{
           {"betas", "0.9,0.999"}, {"weight_decay", "0"}, {"clip", "0"}, {"lr", "0.001"}, {"eps", "1e-08"}}) {
    EXPECT_EQ(Value(adam, setting), value) << setting;
  }
  EXPECT_HAS(Remarks(adam),
             "absent in c.yaml, taken as DeepSpeed has it: lr=0.001 (ours: 0.0003), betas=0.9,0.999 (ours: "
             "0.9,0.95), weight_decay=0 (ours: 0.1), clip=0 (ours: 1)");
  EXPECT_EQ(Value(adam, "clip", {{"clip", "2"}}), "2");
  EXPECT_HAS_NOT(Remarks(adam, {{"clip", "2"}}), "clip");
  EXPECT_EQ(Value("optimizer: {type: AdamW, params: {torch_adam: true}}\n", "weight_decay"), "0.01");
  EXPECT_EQ(Value("optimizer: {type: SGD, params: {lr: 0.1}}\n", "weight_decay"), "0");
  // "auto" is no absence.
  EXPECT_EQ(Value("zero_optimization: {stage: 1}\ngradient_clipping: auto\n", "clip"), "1");
  EXPECT_EQ(Value("zero_optimization: {stage: 1}\ngradient_clipping: null\n", "clip"), "0");
  EXPECT_EQ(Value("zero_optimization: {stage: 1}\noptimizer: {type: null, params: {}}\n", "betas"),
            "0.9,0.95");
  // Without a stage DeepSpeed shards nothing.
  EXPECT_EQ(Value("train_batch_size: 8\nbf16: {enabled: true}\n", "strategy"), "no_shard");
  for (const char* sign : {"bf16: {enabled: true}\n", "steps_per_print: 10\n", "fp16: {enabled: true}\n",
                           "activation_checkpointing: {cpu_checkpointing: false}\n"}) {
    EXPECT_EQ(Value(sign, "strategy"), "no_shard") << sign;
    EXPECT_EQ(Value(sign, "clip"), "0") << sign;
  }
  EXPECT_EQ(Value("fp16: {enabled: true}\nzero_optimization: {stage: 1}\n", "hysteresis"), "2");
  EXPECT_EQ(Value("fp16: {enabled: true}\nzero_optimization: {stage: 1}\n", "loss_scale_window"), "1000");
  EXPECT_EQ(Value("fp16: {enabled: true}\nzero_optimization: {stage: 1}\n", "min_loss_scale"), "1");
  EXPECT_EQ(Value("fp16: true\nstrategy: ddp\n", "loss_scale_window"), "2000");
  EXPECT_EQ(Value("distributed_type: DEEPSPEED\nmixed_precision: fp16\n", "hysteresis"), "2");
}

TEST(DeepSpeedFilesTest, AbsentAccumulationIsWhatIsLeftOfTheBatch) {
  const std::string batch =
      "zero_optimization: {stage: 2}\ntrain_batch_size: 16\ntrain_micro_batch_size_per_gpu: 2\n";
  EXPECT_EQ(Value(batch, "micro_steps", {{"world_size", "2"}}), "4");
  EXPECT_EQ(Value(batch, "micro_steps"), "1");
  EXPECT_HAS(Remarks(batch), "gradient_accumulation_steps is absent in c.yaml: micro_steps=1");
  EXPECT_EQ(Value(batch + "gradient_accumulation_steps: 8\n", "micro_steps"), "8");
  EXPECT_HAS_NOT(Remarks(batch + "gradient_accumulation_steps: 8\n"), "gradient_accumulation_steps");
}

TEST(DeepSpeedFilesTest, OurOwnFilesKeepOurDefaults) {
  EXPECT_EQ(Value("strategy: ddp\nlr: 0.1\n", "clip"), "1");
  EXPECT_EQ(Value("strategy: ddp\nzero_optimization: {overlap_comm: true}\n", "clip"), "1");
  EXPECT_EQ(Value("fsdp: {fsdp_sharding_strategy: FULL_SHARD}\noptimizer: {type: AdamW}\n", "clip"), "1");
  EXPECT_EQ(Remarks("strategy: ddp\nlr: 0.1\nbetas: [0.8, 0.9]\n"), "");
  // A section of DeepSpeed's has its defaults wherever it stands.
  EXPECT_EQ(Value("strategy: ddp\noptimizer: {type: AdamW}\n", "weight_decay"), "0");
  EXPECT_HAS(Remarks("strategy: ddp\noptimizer: {type: AdamW}\n"), "weight_decay=0 (ours: 0.1)");
}

TEST(DeepSpeedFilesTest, AutosAreNamed) {
  const std::string remarks = Remarks(
      "zero_optimization: {stage: 3, reduce_bucket_size: auto}\nbf16: {enabled: auto}\n"
      "gradient_clipping: auto\ntrain_batch_size: auto\ngradient_accumulation_steps: auto\n");
  EXPECT_HAS(remarks, "bf16.enabled (line 2) mixed_precision=no");
  EXPECT_HAS(remarks, "gradient_clipping (line 3) clip=1");
  EXPECT_HAS(remarks, "gradient_accumulation_steps (line 5) micro_steps=1");
  EXPECT_HAS_NOT(remarks, "train_batch_size");
  const std::string given =
      Remarks("zero_optimization: {stage: 3}\nbf16: {enabled: auto}\nmixed_precision: bf16\n");
  EXPECT_HAS_NOT(given, "auto");
  EXPECT_HAS_NOT(Remarks("zero_optimization: {stage: 3}\nbf16: {enabled: auto}\n",
                         {{"param_dtype", "bf16"}, {"mixed_precision", "bf16"}}),
                 "auto");
}

TEST(DeepSpeedFilesTest, Schedules) {
  const std::string zero = "zero_optimization: {stage: 1}\noptimizer: {type: AdamW, params: {lr: 0.004}}\n";
  const std::string cosine =
      zero + "scheduler: {type: WarmupCosineLR, params: {total_num_steps: 100, warmup_min_ratio: 0.25}}\n";
  for (const auto& [setting, value] : std::vector<Flag>{{"lr_schedule", "cosine"},
                                                        {"lr_convention", "deepspeed"},
                                                        {"warmup_type", "log"},
                                                        {"warmup_steps", "1000"},
                                                        {"warmup_min_lr", "0.001"},
                                                        {"min_lr", ShowNumber(1e-4 * 0.004)},
                                                        {"steps", "100"}})
    EXPECT_EQ(Value(cosine, setting), value) << setting;
  const std::string decay =
      zero +
      "scheduler: {type: WarmupDecayLR, params: {total_num_steps: 100, warmup_min_lr: 0.001, "
      "warmup_num_steps: 10, warmup_type: linear}}\n";
  for (const auto& [setting, value] : std::vector<Flag>{{"lr_schedule", "linear"},
                                                        {"warmup_type", "linear"},
                                                        {"warmup_steps", "10"},
                                                        {"warmup_min_lr", "0.001"},
                                                        {"min_lr", "0.001"}})
    EXPECT_EQ(Value(decay, setting), value) << setting;
  EXPECT_HAS(Remarks(decay), "the rate rises to lr=0.004; DeepSpeed's would to 0.001");
  const std::string peak = zero + "scheduler: {type: WarmupLR, params: {warmup_max_lr: 0.001}}\n";
  EXPECT_EQ(Value(peak, "lr"), "0.001");
  EXPECT_HAS(Remarks(peak),
             "optimizer.params.lr in c.yaml is not used: its schedule rises to warmup_max_lr=0.001");
  EXPECT_EQ(Value(zero + "scheduler: {type: WarmupLR}\n", "lr"), "0.004");
  EXPECT_EQ(Value(zero + "scheduler: {type: WarmupLR}\n", "min_lr"), "0");
  EXPECT_HAS(Value(zero + "scheduler: {type: WarmupLR, params: {warmup_min_lr: 1}}\n", "lr"), "above lr");
  EXPECT_EQ(Value(zero + "scheduler: {type: WarmupLR}\n", "warmup_steps", {{"warmup_ratio", "0.5"}}), "0");
  // Left to the script: our own rate and steps, DeepSpeed's curve.
  const std::string autos =
      zero + "scheduler: {type: WarmupLR, params: {warmup_num_steps: auto, warmup_min_lr: auto}}\n";
  EXPECT_EQ(Value(autos, "warmup_steps"), "0");
  EXPECT_HAS(Remarks(autos), "scheduler.params.warmup_num_steps (line 3) warmup_steps=0");
}

TEST(TrainerFilesTest, WhatIsHalfSaidIsNamed) {
  EXPECT_HAS(
      Remarks("strategy: ddp\nadam_beta1: 0.8\nlearning_rate: 1e-4\n"),
      "betas=0.8,0.95 (there 0.8,0.999), weight_decay=0.1 (there 0), lr_schedule=constant (there linear)");
  EXPECT_EQ(Remarks("strategy: ddp\nlearning_rate: 1e-4\nmax_grad_norm: 0.5\n"), "");
}

TEST(ForeignFilesTest, WhatIsPrintedReadsBack) {
  for (const std::string& text :
       {std::string("distributed_type: MULTI_GPU\nmixed_precision: bf16\n"),
        std::string("zero_optimization: {stage: 3}\nfp16: {enabled: true}\noptimizer: {type: Adam}\n"
                    "scheduler: {type: WarmupCosineLR}\ntrain_batch_size: 64\n")}) {
    const absl::StatusOr<Effective> first = Folder().Write("c.yaml", text).Read();
    ASSERT_TRUE(first.ok()) << first.status();
    const absl::StatusOr<Effective> again = Folder().Write("c.yaml", PrintConfig(*first)).Read();
    ASSERT_TRUE(again.ok()) << again.status();
    for (const Setting& setting : Settings()) {
      if (!setting.stands_for.empty()) continue;
      EXPECT_EQ(setting.value.show(again->configuration), setting.value.show(first->configuration))
          << setting.name;
    }
  }
  const absl::StatusOr<Effective> made = Folder().Write("c.yaml", "zero_optimization: {stage: 3}\n").Read();
  EXPECT_HAS(PrintConfig(*made), "# DeepSpeed's default");
}

}  // namespace
}  // namespace ftc
