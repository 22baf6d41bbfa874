// Keys of FSDP, DeepSpeed and Accelerate that are accepted and have no effect, with the reason that is
// printed.
#include "tools/ftc/config/settings.h"

namespace ftc {

const std::vector<ForeignKey>& ForeignKeys() {
  constexpr char kLauncher[] = "the launcher decides it";
  constexpr char kLayers[] = "units are the layers of the model";
  constexpr char kAlways[] = "it is always so here";
  constexpr char kFlat[] = "gathers and reductions work in place in flat buffers";
  constexpr char kPinned[] = "on CPU ranks host memory is not pinned";
  constexpr char kSharded[] = "units are sliced, whatever their size";
  constexpr char kCheckpoint[] = "checkpoints are written by ftexec";
  static const auto* const kKeys = new std::vector<ForeignKey>{
      {"distributed_type", "the strategy decides"},
      {"compute_environment", kLauncher},
      {"machine_rank", kLauncher},
      {"num_machines", kLauncher},
      {"main_process_ip", kLauncher},
      {"main_process_port", kLauncher},
      {"main_training_function", kLauncher},
      {"rdzv_backend", kLauncher},
      {"same_network", kLauncher},
      {"use_cpu", kLauncher},
      {"gpu_ids", kLauncher},
      {"debug", kLauncher},
      {"deepspeed_multinode_launcher", kLauncher},
      {"downcast_bf16", "there are no TPUs here"},
      {"fsdp.fsdp_version", "there is one kind of sharding here"},
      {"fsdp.fsdp_use_orig_params", kAlways},
      {"fsdp.fsdp_sync_module_states", kAlways},
      {"fsdp.fsdp_cpu_ram_efficient_loading", kAlways},
      {"fsdp.fsdp_transformer_layer_cls_to_wrap", kLayers},
      {"zero3_init_flag", kAlways},
      {"zero3_save_16bit_model", kCheckpoint},
      {"zero_optimization.allgather_partitions", kFlat},
      {"zero_optimization.contiguous_gradients", kFlat},
      {"zero_optimization.reduce_scatter", kFlat},
      {"zero_optimization.round_robin_gradients", kFlat},
      {"zero_optimization.sub_group_size", kSharded},
      {"zero_optimization.stage3_max_reuse_distance", "the strategy decides what is released"},
      {"zero_optimization.stage3_gather_16bit_weights_on_model_save", kCheckpoint},
      {"zero_optimization.offload_optimizer.pin_memory", kPinned},
      {"zero_optimization.offload_param.pin_memory", kPinned},
      {"activation_checkpointing.partition_activations", "activations are not sharded among ranks"},
      {"activation_checkpointing.contiguous_memory_optimization", kAlways},
      {"activation_checkpointing.synchronize_checkpoint_boundary", "there is nothing to synchronise"},
      {"activation_checkpointing.profile", "ftexec --trace shows it"},
      {"fp16.auto_cast", "batches hold integers"},
      {"optimizer.params.torch_adam", "there is one implementation here"},
      {"optimizer.params.adam_w_mode", ""},  // read with optimizer.type
      {"scheduler.params.warmup_min_lr", "warm-up begins at 0"},
      {"scheduler.params.warmup_min_ratio", "warm-up begins at 0"},
      {"scheduler.params.warmup_type", "warm-up is linear"},
      {"train_batch_size", "it follows from batch, micro_steps and the world size at launch"},
      {"steps_per_print", "ftexec prints each step"},
      {"wall_clock_breakdown", "ftexec --trace shows it"},
      {"zero_allow_untested_optimizer", "all optimizers here are tested"},
  };
  return *kKeys;
}

}  // namespace ftc
