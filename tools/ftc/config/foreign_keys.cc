#include "tools/ftc/config/foreign_keys.h"

#include <algorithm>

#include "tools/ftc/config/values.h"

namespace ftc {
namespace {

using Use = ForeignKey::Use;

// Keys with one reason.
struct Group {
  Use use;
  const char* reason;
  std::vector<const char*> keys;
  std::vector<std::string> at_rest = {};
};

std::vector<Group> AccelerateKeys() {
  constexpr char kLauncher[] = "the launcher decides it";
  constexpr char kNoTpu[] = "there are no TPUs here";
  constexpr char kAlways[] = "it is always so here";
  constexpr char kSageMaker[] = "Amazon SageMaker is not supported; torchrun or ftrun launch ftexec";
  return {
      {Use::kRefused, kSageMaker, {"compute_environment"}, {"local_machine"}},
      {Use::kPassedOver, kLauncher, {"machine_rank"}, {"0"}},
      {Use::kPassedOver, kLauncher, {"num_machines"}, {"1"}},
      {Use::kPassedOver, kLauncher, {"main_training_function"}, {"main"}},
      {Use::kPassedOver, kLauncher, {"rdzv_backend"}, {"static"}},
      {Use::kPassedOver, kLauncher, {"same_network"}, {"true"}},
      {Use::kPassedOver, kLauncher, {"gpu_ids"}, {"all"}},
      {Use::kPassedOver, kLauncher, {"deepspeed_multinode_launcher"}, {"standard"}},
      {Use::kPassedOver,
       kLauncher,
       {"main_process_ip", "main_process_port", "deepspeed_hostfile", "deepspeed_exclusion_filter",
        "deepspeed_inclusion_filter", "enable_cpu_affinity", "mpirun_config.*", "rdzv_conf.*"}},
      {Use::kPassedOver, "ftexec --device decides it", {"use_cpu", "use_xpu", "ipex_config.*"}},
      {Use::kPassedOver, "ftexec always says what goes wrong", {"debug"}},
      {Use::kPassedOver,
       "the whole step is compiled here",
       {"dynamo_config.*", "dynamo_backend", "compile.*"}},
      {Use::kPassedOver,
       kNoTpu,
       {"downcast_bf16", "tpu_name", "tpu_zone", "tpu_vm", "tpu_env", "tpu_use_sudo", "commands",
        "command_file"}},
      {Use::kRefused, kNoTpu, {"tpu_use_cluster", "fsdp.xla"}},
      {Use::kElsewhere, "the strategy where no other key says it", {"distributed_type"}},
      {Use::kElsewhere, "the name of a DeepSpeed file, which is read too", {"deepspeed_config_file"}},
      {Use::kElsewhere,
       "both above 1: hybrid_shard over such a mesh",
       {"parallelism_config.dp_replicate_size", "parallelism_config.dp_shard_size"}},
      {Use::kPassedOver, "no such parallelism is asked for", {"parallelism_config.*"}},
      {Use::kPassedOver, "mixed_precision is not fp8", {"fp8_config.*"}},
      {Use::kRefused, "fp8 is not supported here; bf16 is the nearest", {"fp8"}},
      {Use::kRefused,
       "Megatron-LM is not supported here; use FSDP's or DeepSpeed's strategies",
       {"megatron_lm_config.*", "use_megatron_lm"}},
      {Use::kRefused,
       kSageMaker,
       {"ec2_instance_type", "iam_role_name", "image_uri", "profile", "region", "base_job_name",
        "pytorch_version", "transformers_version", "py_version", "sagemaker_inputs_file",
        "sagemaker_metrics_file", "additional_args.*"}},
      {Use::kPassedOver, "there is one kind of sharding here", {"fsdp.fsdp_version"}},
      {Use::kPassedOver,
       kAlways,
       {"fsdp.fsdp_use_orig_params", "fsdp.fsdp_sync_module_states", "fsdp.fsdp_cpu_ram_efficient_loading"}},
      {Use::kSilent, "weights are drawn or read where they are sharded", {"zero3_init_flag"}},
      {Use::kPassedOver,
       "units are the layers of the model",
       {"fsdp.fsdp_transformer_layer_cls_to_wrap", "fsdp.fsdp_transformer_cls_names_to_wrap",
        "deepspeed_moe_layer_cls_names"}},
      {Use::kPassedOver,
       "saved weights are whole; see --save-weights of ftexec",
       {"fsdp.fsdp_final_state_dict_type"}},
      {Use::kRefused,
       "all parameters of a unit are sharded; see frozen and keep_gathered",
       {"fsdp.fsdp_ignored_modules"}},
      {Use::kPassedOver, "weights are saved by ftexec", {"zero3_save_16bit_model"}},
      {Use::kPassedOver,
       "nothing is offloaded to NVMe",
       {"offload_optimizer_nvme_path", "offload_param_nvme_path"}},
  };
}

std::vector<Group> ParallelismKeys() {
  const std::vector<std::string> one = {"0", "1", "-1", "1.0"};
  return {
      {Use::kRefused,
       "tensor parallelism is not supported",
       {"parallelism_config.tp_size", "tensor_parallel.autotp_size", "tensor_parallel.tp_size",
        "tensor_parallel_size", "tensor_model_parallel_size", "tp_size"},
       one},
      {Use::kRefused,
       "sequence parallelism is not supported",
       {"parallelism_config.sp_size", "sequence_parallel_size", "sequence_parallel"},
       one},
      {Use::kRefused,
       "context parallelism is not supported",
       {"parallelism_config.cp_size", "context_parallel_size", "cp_size"},
       one},
      {Use::kRefused,
       "expert parallelism is not supported",
       {"parallelism_config.ep_size", "expert_parallel.enabled", "expert_parallel_size",
        "expert_model_parallel_size"},
       one},
      {Use::kRefused,
       "pipeline parallelism is not supported",
       {"parallelism_config.pp_size", "pipeline_model_parallel_size", "pipeline_parallel_size",
        "pipeline.stages"},
       one},
      {Use::kPassedOver, "there is no tensor parallelism here", {"tensor_parallel.*"}},
      {Use::kSilent, "said by its enabled", {"expert_parallel.*"}},
      {Use::kPassedOver, "there is no expert parallelism here", {"use_data_before_expert_parallelism"}},
      {Use::kPassedOver, "there is no pipeline parallelism here", {"pipeline.*"}},
      {Use::kPassedOver, "there is no sequence parallelism here", {"seq_parallel_communication_data_type"}},
  };
}

std::vector<Group> ZeroKeys() {
  constexpr char kFlat[] = "gathers and reductions work in place in flat buffers";
  constexpr char kPinned[] = "on CPU ranks host memory is not pinned";
  constexpr char kHost[] = "what is offloaded is offloaded whole, to host memory";
  constexpr char kCheckpoint[] = "checkpoints are written by ftexec";
  return {
      {Use::kPassedOver,
       kFlat,
       {"zero_optimization.allgather_partitions", "zero_optimization.contiguous_gradients",
        "zero_optimization.reduce_scatter"},
       {"true"}},
      {Use::kPassedOver,
       kFlat,
       {"zero_optimization.round_robin_gradients", "zero_optimization.use_multi_rank_bucket_allreduce",
        "zero_optimization.stage3_use_all_reduce_for_fetch_params",
        "zero_optimization.stage3_allgather_sequential",
        "zero_optimization.mics_hierarchical_params_gather"}},
      {Use::kPassedOver,
       "units are sliced, whatever their size",
       {"zero_optimization.sub_group_size", "zero_optimization.stage3_model_persistence_threshold",
        "zero_optimization.stage3_module_granularity_threshold", "zero_optimization.leaf_module.*"}},
      {Use::kPassedOver,
       "the strategy decides what is released",
       {"zero_optimization.stage3_max_reuse_distance", "zero_optimization.zero_hpz_partition_size"}},
      {Use::kPassedOver,
       kCheckpoint,
       {"zero_optimization.stage3_gather_16bit_weights_on_model_save",
        "zero_optimization.stage3_gather_fp16_weights_on_model_save",
        "zero_optimization.load_from_fp32_weights", "zero_optimization.elastic_checkpoint",
        "zero_optimization.pipeline_loading_checkpoint"}},
      {Use::kPassedOver,
       "it concerns DeepSpeed's own way of working",
       {"zero_optimization.ignore_unused_parameters", "zero_optimization.legacy_stage1",
        "zero_optimization.memory_efficient_linear", "zero_optimization.override_module_apply",
        "zero_optimization.log_trace_cache_warnings", "zero_optimization.enable_sanity_checks",
        "zero_optimization.save_muon_momentum_buffer_in_memory", "zero_allow_untested_optimizer",
        "zero_force_ds_cpu_optimizer", "graph_harvesting", "disable_allgather", "sparse_gradients",
        "managed_gradient_accumulation"}},
      {Use::kPassedOver,
       kPinned,
       {"zero_optimization.offload_optimizer.pin_memory", "zero_optimization.offload_param.pin_memory",
        "zero_optimization.cpu_offload_use_pin_memory"}},
      {Use::kPassedOver,
       kHost,
       {"zero_optimization.offload_optimizer.*", "zero_optimization.offload_param.*"}},
      {Use::kRefused,
       "quantized communication is not supported; see reduce_dtype",
       {"zero_optimization.zero_quantized_weights", "zero_optimization.zero_quantized_gradients",
        "zero_optimization.zero_quantized_nontrainable_weights", "zero_optimization.zeropp_loco_param.*"}},
      {Use::kRefused,
       "MiCS is not supported; strategy: hybrid_shard is the nearest",
       {"zero_optimization.mics_shard_size"},
       {"-1"}},
      {Use::kRefused, "updates that come late are not supported", {"zero_optimization.zenflow.*"}},
  };
}

std::vector<Group> DeepSpeedKeys() {
  constexpr char kTrace[] = "ftexec --trace shows it";
  constexpr char kMetrics[] = "ftexec --metrics writes it";
  constexpr char kOther[] = "it would train something else and is not supported";
  constexpr char kEnabled[] = "said by its enabled";
  return {
      {Use::kPassedOver, "ftexec prints each step", {"steps_per_print", "log_level"}},
      {Use::kPassedOver,
       kMetrics,
       {"tensorboard.*", "wandb.*", "comet.*", "csv_monitor.*", "monitor_config.*", "monitor.*"}},
      {Use::kPassedOver,
       kTrace,
       {"wall_clock_breakdown", "memory_breakdown", "dump_state", "flops_profiler.*", "comms_logger.*",
        "comms_config.*", "timers.*"}},
      {Use::kPassedOver,
       "checkpoints are written by ftexec",
       {"checkpoint.*", "nebula.*", "datastates_ckpt.*", "datastates.*"}},
      {Use::kPassedOver, "nothing is read from NVMe", {"aio.*"}},
      {Use::kPassedOver, "data wrap around at their end", {"dataloader_drop_last"}},
      {Use::kPassedOver,
       "activations are not sharded among ranks",
       {"activation_checkpointing.partition_activations"}},
      {Use::kPassedOver, "it is always so here", {"activation_checkpointing.contiguous_memory_optimization"}},
      {Use::kPassedOver,
       "there is nothing to synchronise",
       {"activation_checkpointing.synchronize_checkpoint_boundary"}},
      {Use::kPassedOver, kTrace, {"activation_checkpointing.profile"}},
      {Use::kPassedOver, "batches hold integers", {"fp16.auto_cast"}},
      {Use::kPassedOver,
       "gradients are added as they come, and steps that are not finite are skipped",
       {"bf16.immediate_grad_update", "bf16.check_overflow"}},
      {Use::kRefused,
       "only fp32 master weights, or none with master_weights: off",
       {"bf16.bf16_master_weights_and_grads", "bf16.bf16_optimizer_states",
        "fp16.fp16_master_weights_and_grads"}},
      {Use::kRefused,
       "the hysteresis is used up for good, as DeepSpeed has it by default",
       {"fp16.consecutive_hysteresis"}},
      {Use::kRefused, "use bf16 or fp16 instead", {"amp.enabled", "torch_autocast.enabled"}},
      {Use::kSilent, kEnabled, {"amp.*", "torch_autocast.*"}},
      {Use::kRefused,
       "gradients are the mean over ranks, divided after their sum",
       {"gradient_allreduce_op"},
       {"mean"}},
      {Use::kRefused, "gradients are the mean over ranks, divided after their sum", {"prescale_gradients"}},
      {Use::kRefused,
       "gradients are the mean over ranks, divided after their sum",
       {"gradient_predivide_factor"},
       {"1", "1.0"}},
      {Use::kElsewhere,
       "must be that of reduce_dtype, in which micro-steps are added up",
       {"data_types.grad_accum_dtype"}},
      {Use::kRefused, "see param_dtype and buffer_dtype", {"data_types.*"}},
      {Use::kRefused,
       kOther,
       {"sparse_attention.*", "elasticity.enabled", "autotuning.enabled", "progressive_layer_drop.enabled",
        "eigenvalue.enabled", "curriculum_learning.enabled", "data_efficiency.enabled",
        "hybrid_engine.enabled", "compression_training.*", "quantize_training.*", "weight_quantization.*"}},
      {Use::kSilent,
       kEnabled,
       {"elasticity.*", "autotuning.*", "progressive_layer_drop.*", "eigenvalue.*", "curriculum_learning.*",
        "data_efficiency.*", "hybrid_engine.*"}},
  };
}

std::vector<Group> OptimizerKeys() {
  constexpr char kOne[] = "there is one implementation here";
  constexpr char kCycles[] =
      "of OneCycle or LRRangeTest, which are not supported; WarmupLR, WarmupDecayLR and "
      "WarmupCosineLR are";
  return {
      {Use::kElsewhere,
       "read with `optimizer.type`",
       {"optimizer.params.adam_w_mode", "optimizer.params.torch_adam"}},
      {Use::kPassedOver,
       kOne,
       {"optimizer.params.fused", "optimizer.params.foreach", "optimizer.params.capturable",
        "optimizer.params.differentiable", "optimizer.params.set_grad_none", "optimizer.legacy_fusion"}},
      {Use::kRefused, "moments are corrected for their bias", {"optimizer.params.bias_correction"}, {"true"}},
      {Use::kRefused, "moments are kept in fp32", {"optimizer.params.fp32_optimizer_states"}, {"true"}},
      {Use::kRefused,
       "there is no such variant here",
       {"optimizer.params.amsgrad", "optimizer.params.maximize"}},
      {Use::kRefused, "there is no such variant here", {"optimizer.params.dampening"}, {"0", "0.0"}},
      {Use::kRefused,
       "DeepSpeed itself refuses it; gradient_clipping says it",
       {"optimizer.params.max_grad_norm"}},
      {Use::kRefused, "a schedule begins with the run", {"scheduler.params.last_batch_iteration"}, {"-1"}},
      {Use::kRefused,
       kCycles,
       {"scheduler.params.cycle_min_lr", "scheduler.params.cycle_max_lr", "scheduler.params.decay_lr_rate",
        "scheduler.params.cycle_first_step_size", "scheduler.params.cycle_second_step_size",
        "scheduler.params.cycle_first_stair_count", "scheduler.params.cycle_second_stair_count",
        "scheduler.params.decay_step_size", "scheduler.params.cycle_momentum",
        "scheduler.params.cycle_min_mom", "scheduler.params.cycle_max_mom", "scheduler.params.decay_mom_rate",
        "scheduler.params.lr_range_test_min_lr", "scheduler.params.lr_range_test_step_size",
        "scheduler.params.lr_range_test_step_rate", "scheduler.params.lr_range_test_staircase"}},
  };
}

}  // namespace

const std::vector<ForeignKey>& ForeignKeys() {
  static const std::vector<ForeignKey>* const kKeys = [] {
    auto* keys = new std::vector<ForeignKey>;
    for (auto groups : {AccelerateKeys, ParallelismKeys, ZeroKeys, DeepSpeedKeys, OptimizerKeys}) {
      for (const Group& group : groups()) {
        for (const char* key : group.keys)
          keys->push_back({.key = key, .use = group.use, .reason = group.reason, .at_rest = group.at_rest});
      }
    }
    return keys;
  }();
  return *kKeys;
}

bool SaysNotUsed(const YamlEntry& entry) {
  if (entry.is_list) return entry.text.empty() && !entry.is_nested;
  const std::string plain = Plain(entry.text);
  return plain.empty() || plain == "none" || plain == "null" || ReadBool(plain) == false;
}

bool IsAtRest(const ForeignKey& key, const YamlEntry& entry) {
  const auto rests = [&](std::string_view value) {
    return std::find(key.at_rest.begin(), key.at_rest.end(), value) != key.at_rest.end();
  };
  // Where true is at rest, false is what asks.
  if (rests("true") && !entry.is_list && ReadBool(entry.text) == false) return false;
  if (SaysNotUsed(entry)) return true;
  return !entry.is_list && (Plain(entry.text) == "auto" || rests(entry.text) || rests(Plain(entry.text)));
}

bool IsComment(const std::string& path) {
  const size_t dot = path.rfind('.');
  return path.substr(dot == path.npos ? 0 : dot + 1).starts_with("_comment");
}

}  // namespace ftc
