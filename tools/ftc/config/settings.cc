#include "tools/ftc/config/settings.h"

#include <algorithm>
#include <limits>

namespace ftc {
namespace {

constexpr char kSharding[] = "Sharding";
constexpr char kOverlap[] = "Overlap";
constexpr char kPrecision[] = "Precision";
constexpr char kMemory[] = "Recomputation and offload";
constexpr char kOptimizer[] = "Optimizer";
constexpr char kAccumulation[] = "Accumulation";
constexpr char kMesh[] = "Mesh that budgets are meant for";
constexpr char kRun[] = "Defaults of the run";

constexpr int64_t kMostElements = int64_t{1} << 53;
constexpr double kMostLr = 3e38;                  // f32 in the executor
constexpr int64_t kMostSteps = int64_t{1} << 53;  // kept in the plan as doubles

const Synonyms kDtypes = {{"float32", "fp32"},  {"float", "fp32"},   {"f32", "fp32"},  {"no", "fp32"},
                          {"bfloat16", "bf16"}, {"float16", "fp16"}, {"half", "fp16"}, {"f16", "fp16"}};
const std::vector<std::string> kDtypeNames = {"fp32", "bf16", "fp16"};

// The field of a Configuration, const or not.
#define FIELD(path) [](auto& c) -> auto& { return c.path; }
#define OPTION(path) FIELD(options.path)

std::vector<Setting> Sharding() {
  const Converter stage =
      FromWords({{"0", "no_shard"}, {"1", "zero1"}, {"2", "shard_grad_op"}, {"3", "full_shard"}});
  return {
      {"strategy",
       kSharding,
       "S",
       StrategyValue(),
       "How parameters, gradients and optimizer state are sharded",
       {{"fsdp.fsdp_sharding_strategy", FromWords({{"1", "full_shard"},
                                                   {"2", "shard_grad_op"},
                                                   {"3", "no_shard"},
                                                   {"4", "hybrid_shard"},
                                                   {"5", "hybrid_shard_zero2"}},
                                                  /*others=*/true)},
        {"fsdp.fsdp_reshard_after_forward",
         FromWords({{"true", "full_shard"}, {"false", "shard_grad_op"}}, /*others=*/true)},
        {"zero_optimization.stage", stage},
        {"zero_stage", stage}}},
      {"wrap",
       kSharding,
       "W",
       WrapValue(),
       "Parameters gathered together: a layer, by size, all, or layers by name",
       {{"fsdp.fsdp_auto_wrap_policy"}},
       "names:"},
      {"min_num_params",
       kSharding,
       "N",
       Integer(OPTION(units.minNumParams), 1, kMostElements),
       "wrap=size: elements that close a unit",
       {{"fsdp.fsdp_min_num_params"}}},
      {"persistence_threshold",
       kSharding,
       "N",
       Integer(OPTION(units.persistenceThreshold), 0, kMostElements),
       "Parameters with fewer elements stay gathered at rest",
       {{"zero_optimization.stage3_param_persistence_threshold"}}},
      {"frozen",
       kSharding,
       "PAT[,PAT]",
       Patterns(OPTION(units.frozen)),
       "Parameters that are not trained",
       {{"freeze"}},
       ""},
      {"keep_gathered",
       kSharding,
       "PAT[,PAT]",
       Patterns(OPTION(units.keepGathered)),
       "Units not released between forward and backward",
       {},
       ""},
  };
}

std::vector<Setting> Overlap() {
  return {
      {"prefetch",
       kOverlap,
       "P",
       Word("prefetch", OPTION(overlap.prefetch), {"pre", "post", "none", "auto"},
            {{"backward_pre", "pre"}, {"backward_post", "post"}, {"no_prefetch", "none"}, {"null", "none"}}),
       "When backward gathers the next unit: before or after the current one's gradients; none: no overlap "
       "at all; auto: by cost",
       {{"fsdp.fsdp_backward_prefetch"}, {"zero_optimization.overlap_comm", FromBool(std::nullopt, "none")}}},
      {"forward_prefetch",
       kOverlap,
       "N",
       Integer(OPTION(overlap.forwardPrefetch), 0, 1024, {{"true", "1"}, {"false", "0"}}),
       "Units gathered ahead of their use in forward",
       {{"fsdp.fsdp_forward_prefetch"}}},
      {"limit_all_gathers",
       kOverlap,
       "N",
       Integer(OPTION(overlap.limitAllGathers), 0, 1 << 20, {{"true", "2"}, {"false", "0"}}),
       "Gathered units alive at a time, the one in use included; 0: any number",
       {{"fsdp.limit_all_gathers"}, {"zero_optimization.stage3_max_live_parameters", MaxLiveParameters()}}},
      {"bucket_cap_mb",
       kOverlap,
       "X",
       Number(OPTION(overlap.bucketCapMb), {.low = 0, .high = 1e9}),
       "MiB that reductions of gradients which are whole at rest are joined up to; 0: not joined",
       {{"fsdp.bucket_cap_mb"},
        {"ddp_bucket_cap_mb"},
        {"zero_optimization.reduce_bucket_size", ElementsToMib("reduce_dtype")}}},
      {"reduce_bucket_mb",
       kOverlap,
       "X",
       Number(OPTION(overlap.reduceBucketMb), {.low = 0, .high = 1e9}),
       "The same for gradients that are sharded at rest",
       {{"zero_optimization.reduce_bucket_size", ElementsToMib("reduce_dtype")}}},
      {"gather_bucket_mb",
       kOverlap,
       "X",
       Number(OPTION(overlap.gatherBucketMb), {.low = 0, .high = 1e9}),
       "MiB that gathers are joined up to; 0: not joined",
       {{"zero_optimization.stage3_prefetch_bucket_size", ElementsToMib("param_dtype")},
        {"zero_optimization.allgather_bucket_size", ElementsToMib("param_dtype")}}},
      {"target", kOverlap, "NAME", TargetValue(), "Machine that costs are estimated for"},
      {"memory_budget", kOverlap, "BYTES", Bytes(OPTION(overlap.memoryBudget)),
       "prefetch=auto: bytes per rank, a hard limit; 0: none"},
  };
}

std::vector<Setting> Precision() {
  std::vector<Setting> rows = {
      {"mixed_precision",
       kPrecision,
       "P",
       Word("precision", FIELD(mixed_precision), {"no", "bf16", "fp16"},
            {{"fp32", "no"}, {"float32", "no"}, {"bfloat16", "bf16"}, {"float16", "fp16"}, {"false", "no"}}),
       "Sets the three dtypes below",
       {{"fsdp.fsdp_mixed_precision", FsdpMixedPrecision()},
        {"bf16.enabled", FromBool("bf16", std::nullopt)},
        {"fp16.enabled", FromBool("fp16", std::nullopt)},
        {"bf16", FromBool("bf16", std::nullopt)},
        {"fp16", FromBool("fp16", std::nullopt)}}},
      {"param_dtype",
       kPrecision,
       "T",
       Word("dtype", OPTION(precision.paramDtype), kDtypeNames, kDtypes),
       "Gathered parameters, activations and their gradients",
       {{"fsdp.fsdp_param_dtype"}, {"fsdp.fsdp_mixed_precision.param_dtype"}}},
      {"reduce_dtype",
       kPrecision,
       "T",
       Word("dtype", OPTION(precision.reduceDtype), kDtypeNames, kDtypes),
       "Gradients of parameters, as they are reduced",
       {{"fsdp.fsdp_reduce_dtype"}, {"fsdp.fsdp_mixed_precision.reduce_dtype"}, {"communication_data_type"}}},
      {"buffer_dtype",
       kPrecision,
       "T",
       Word("dtype", OPTION(precision.bufferDtype), kDtypeNames, kDtypes),
       "Tables that are not trained",
       {{"fsdp.fsdp_buffer_dtype"}, {"fsdp.fsdp_mixed_precision.buffer_dtype"}}},
      {"master_weights", kPrecision, "on|off", Switch(OPTION(precision.masterWeights)),
       "fp32 weights beside bf16 ones; off: bf16 weights are all there is"},
      {"loss_scale",
       kPrecision,
       "X",
       LossScaleValue(),
       "fp16: a fixed loss scale, or dynamic",
       {{"fp16.loss_scale"}}},
      {"initial_scale_power",
       kPrecision,
       "N",
       Integer(OPTION(precision.initialScalePower), 0, 126),
       "fp16: the first dynamic scale is 2 to this power",
       {{"fp16.initial_scale_power"}}},
      {"loss_scale_window",
       kPrecision,
       "N",
       Integer(OPTION(precision.lossScaleWindow), 1, kMostSteps),
       "fp16: good steps in a row after which the scale doubles",
       {{"fp16.loss_scale_window"}}},
      {"hysteresis",
       kPrecision,
       "N",
       Integer(OPTION(precision.hysteresis), 1, 1 << 20),
       "fp16: overflows before the scale halves",
       {{"fp16.hysteresis"}}},
      {"min_loss_scale",
       kPrecision,
       "X",
       Number(OPTION(precision.minLossScale), {.low = 0, .high = 1e30}),
       "fp16: the scale never falls below",
       {{"fp16.min_loss_scale"}}},
  };
  rows[0].stands_for = {"param_dtype", "reduce_dtype", "buffer_dtype"};
  return rows;
}

std::vector<Setting> Memory() {
  const Converter optimizer = FromWords({{"cpu", "optimizer"}, {"none", ""}, {"null", ""}});
  const Converter parameters = FromWords({{"cpu", "parameters"}, {"none", ""}, {"null", ""}});
  std::vector<Setting> rows = {
      {"remat",
       kMemory,
       "R",
       RematValue(),
       "Activations computed again in backward rather than kept",
       {{"fsdp.activation_checkpointing", FromBool("every_n:1", "none")},
        {"fsdp.activation_checkpointing.enabled", ActivationCheckpointingEnabled()},
        {"fsdp.activation_checkpointing.checkpoint_every_n_layers", EveryNLayers()},
        {"activation_checkpointing", FromBool("every_n:1", "none")},
        {"activation_checkpointing.enabled", ActivationCheckpointingEnabled()},
        {"activation_checkpointing.checkpoint_every_n_layers", EveryNLayers()},
        {"activation_checkpointing.number_checkpoints", CountOf("segments")},
        {"gradient_checkpointing", FromBool("every_n:1", "none")}}},
      {"offload",
       kMemory,
       "WHAT",
       OffloadValue(),
       "What lives in host memory",
       {{"fsdp.fsdp_cpu_offload", FromBool("optimizer,parameters", std::nullopt)},
        {"fsdp.fsdp_offload_params", FromBool("optimizer,parameters", std::nullopt)},
        {"zero_optimization.offload_optimizer.device", optimizer},
        {"zero_optimization.offload_param.device", parameters},
        {"offload_optimizer_device", optimizer},
        {"offload_param_device", parameters},
        {"activation_checkpointing.cpu_checkpointing", FromBool("activations", std::nullopt)}},
       ""},
  };
  rows[1].adds_up = true;
  return rows;
}

std::vector<Setting> Optimizer() {
  std::vector<Setting> rows = {
      {"optimizer",
       kOptimizer,
       "NAME",
       Word("optimizer", OPTION(optimizer.name), {"adamw", "adam", "sgd"},
            {{"adamw_torch", "adamw"}, {"adamw_torch_fused", "adamw"}, {"adamw_hf", "adamw"}}),
       "Decay of adamw is decoupled, that of adam and sgd is added to the gradient",
       {{"optimizer.type", DeepSpeedOptimizer()}, {"optim"}}},
      {"betas",
       kOptimizer,
       "B1,B2",
       BetasValue(),
       "adamw, adam: decay of the moments",
       {{"optimizer.params.betas"},
        {"adam_beta1", HalfOfBetas(true, "adam_beta2")},
        {"adam_beta2", HalfOfBetas(false, "adam_beta1")}},
       ""},
      {"eps",
       kOptimizer,
       "X",
       Number(OPTION(optimizer.eps)),
       "adamw, adam: added to the root of the second moment",
       {{"optimizer.params.eps"}, {"adam_epsilon"}}},
      {"weight_decay",
       kOptimizer,
       "X",
       Number(OPTION(optimizer.weightDecay)),
       "Decay of parameters of rank 2 and more",
       {{"optimizer.params.weight_decay"}}},
      {"momentum",
       kOptimizer,
       "X",
       Number(OPTION(optimizer.momentum), {.low = 0, .high = 1}),
       "sgd: momentum",
       {{"optimizer.params.momentum"}}},
      {"nesterov",
       kOptimizer,
       "on|off",
       Switch(OPTION(optimizer.nesterov)),
       "sgd: Nesterov's momentum",
       {{"optimizer.params.nesterov"}}},
      {"stochastic_rounding",
       kOptimizer,
       "on|off",
       Switch(OPTION(optimizer.stochasticRounding)),
       "master_weights=off: updated weights are rounded up or down at random, keeping the mean",
       {{"optimizer.stochastic_rounding"}, {"optimizer.params.stochastic_rounding"}}},
      {"clip",
       kOptimizer,
       "X",
       Number(OPTION(optimizer.clip)),
       "Largest global norm of the gradient; 0 does not clip",
       {{"gradient_clipping"}, {"max_grad_norm"}}},
  };
  rows[5].flag_value = rows[6].flag_value = "true";
  return rows;
}

std::vector<Setting> Accumulation() {
  return {
      {"micro_steps",
       kAccumulation,
       "N",
       Integer(OPTION(microSteps), 1, 1 << 20),
       "Micro-steps of a training step",
       {{"gradient_accumulation_steps"}}},
      {"accumulate", kAccumulation, "WHEN", AccumulateValue(),
       "Gradients are communicated in the last micro-step or in each"},
      {"batch",
       kAccumulation,
       "N",
       Integer(FIELD(batch), 0, int64_t{1} << 30),
       "Sequences per rank and micro-step that the model must have; 0: any",
       {{"train_micro_batch_size_per_gpu"}, {"per_device_train_batch_size"}}},
  };
}

std::vector<Setting> MeshRows() {
  return {
      {"world_size", kMesh, "N", Integer(OPTION(worldSize), 1, 1 << 20), "Ranks", {{"num_processes"}}},
      {"mesh", kMesh, "replica:R,shard:S", MeshValue(),
       "Ranks by axis; none: as the strategy has it at launch"},
  };
}

std::vector<Setting> Run() {
  std::vector<Setting> rows = {
      {"lr",
       kRun,
       "X",
       Number(FIELD(run.lr), {.low = 0, .high = kMostLr}),
       "Learning rate, at its peak",
       {{"learning_rate"}, {"optimizer.params.lr"}, {"scheduler.params.warmup_max_lr"}}},
      {"lr_schedule",
       kRun,
       "S",
       Word("schedule", FIELD(run.lr_schedule), {"constant", "linear", "cosine"},
            {{"constant_with_warmup", "constant"}}),
       "After warm-up: constant, or decay to min_lr at the last step",
       {{"lr_scheduler_type"},
        {"scheduler.type",
         FromWords({{"warmuplr", "constant"}, {"warmupdecaylr", "linear"}, {"warmupcosinelr", "cosine"}})}}},
      {"warmup_steps",
       kRun,
       "N",
       Integer(FIELD(run.warmup_steps), 0, kMostSteps),
       "Steps of linear warm-up",
       {{"scheduler.params.warmup_num_steps"}}},
      {"warmup_ratio", kRun, "X", Number(FIELD(run.warmup_ratio), {.low = 0, .high = 1}),
       "The same as a part of all steps"},
      {"min_lr",
       kRun,
       "X",
       Number(FIELD(run.min_lr), {.low = 0, .high = kMostLr}),
       "Learning rate at the end of decay",
       {{"scheduler.params.cos_min_ratio", FractionOfLr()}}},
      {"steps",
       kRun,
       "N",
       Integer(FIELD(run.steps), 0, kMostSteps),
       "Optimizer steps; 0: one pass over the data",
       {{"max_steps", IntegerAbove(0)}, {"scheduler.params.total_num_steps"}}},
      {"seed", kRun, "N", Integer(FIELD(run.seed), 0, kMostSteps), "Seed of everything random"},
      {"max_bad_steps", kRun, "N", Integer(FIELD(run.max_bad_steps), 1, kMostSteps),
       "Steps in a row without a finite loss and gradient that end the run"},
      {"state_dict_type",
       kRun,
       "T",
       Word("state dict", FIELD(run.state_dict_type),
            {"full_state_dict", "sharded_state_dict", "local_state_dict"},
            {{"full", "full_state_dict"}, {"sharded", "sharded_state_dict"}, {"local", "local_state_dict"}}),
       "How checkpoints are written",
       {{"fsdp.fsdp_state_dict_type"}}},
  };
  rows.back().no_effect = "it is kept in the plan; checkpoints do not read it yet";
  return rows;
}

#undef OPTION
#undef FIELD

}  // namespace

const std::vector<Setting>& Settings() {
  static const std::vector<Setting>* const kAll = [] {
    auto* all = new std::vector<Setting>;
    for (auto rows : {Sharding, Overlap, Precision, Memory, Optimizer, Accumulation, MeshRows, Run}) {
      for (Setting& row : rows()) all->push_back(std::move(row));
    }
    return all;
  }();
  return *kAll;
}

size_t SettingIndex(std::string_view name) {
  const std::vector<Setting>& all = Settings();
  return std::find_if(all.begin(), all.end(), [&](const Setting& s) { return s.name == name; }) - all.begin();
}

std::string FlagName(std::string_view setting) {
  std::string flag(setting);
  std::replace(flag.begin(), flag.end(), '_', '-');
  return flag;
}

}  // namespace ftc
