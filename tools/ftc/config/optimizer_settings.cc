// Settings of the optimizer, of accumulation and of the mesh.
#include "tools/ftc/config/setting_rows.h"

namespace ftc {
namespace {

constexpr char kOptimizer[] = "Optimizer";
constexpr char kAccumulation[] = "Accumulation";
constexpr char kMesh[] = "Mesh that budgets are meant for";

}  // namespace

std::vector<Setting> OptimizerRows() {
  std::vector<Setting> rows = {
      {"optimizer",
       kOptimizer,
       "NAME",
       OptimizerValue(),
       "Decay of adamw and lion is decoupled, that of adam and sgd is added to the gradient",
       {{"optimizer.type", DeepSpeedOptimizer()}, {"optim"}}},
      {"betas",
       kOptimizer,
       "B1,B2",
       BetasValue(),
       "adamw, adam, lion: decay of the moments",
       {{"optimizer.params.betas"},
        {"adam_beta1", HalfOfBetas(true, "adam_beta2")},
        {"adam_beta2", HalfOfBetas(false, "adam_beta1")}},
       ""},
      {"eps",
       kOptimizer,
       "X",
       Number(FT_OPTION(optimizer.eps)),
       "adamw, adam: added to the root of the second moment",
       {{"optimizer.params.eps"}, {"adam_epsilon"}}},
      {"weight_decay",
       kOptimizer,
       "X",
       Number(FT_OPTION(optimizer.weightDecay)),
       "Decay of parameters of rank 2 and more",
       {{"optimizer.params.weight_decay"}}},
      {"momentum",
       kOptimizer,
       "X",
       Number(FT_OPTION(optimizer.momentum), {.low = 0, .high = 1}),
       "sgd: momentum",
       {{"optimizer.params.momentum"}}},
      {"nesterov",
       kOptimizer,
       "on|off",
       Switch(FT_OPTION(optimizer.nesterov)),
       "sgd: Nesterov's momentum",
       {{"optimizer.params.nesterov"}}},
      {"stochastic_rounding",
       kOptimizer,
       "on|off",
       Switch(FT_OPTION(optimizer.stochasticRounding)),
       "master_weights=off: updated weights are rounded up or down at random, keeping the mean",
       {{"optimizer.stochastic_rounding"}, {"optimizer.params.stochastic_rounding"}}},
      {"clip",
       kOptimizer,
       "X",
       Number(FT_OPTION(optimizer.clip)),
       "Largest global norm of the gradient; 0 does not clip",
       {{"gradient_clipping"}, {"max_grad_norm"}}},
  };
  rows[5].is_switch = rows[6].is_switch = true;
  return rows;
}

std::vector<Setting> AccumulationRows() {
  return {
      {"micro_steps",
       kAccumulation,
       "N",
       Integer(FT_OPTION(microSteps), 1, 1 << 20),
       "Micro-steps of a training step",
       {{"gradient_accumulation_steps"}}},
      {"accumulate", kAccumulation, "WHEN", AccumulateValue(),
       "Gradients are communicated in the last micro-step or in each"},
      {"batch",
       kAccumulation,
       "N",
       Integer(FT_FIELD(batch), 0, int64_t{1} << 30),
       "Sequences per rank and micro-step that the model must have; 0: any",
       {{"train_micro_batch_size_per_gpu"}, {"per_device_train_batch_size"}}},
      {"global_batch",
       kAccumulation,
       "N",
       Integer(FT_FIELD(global_batch), 0, int64_t{1} << 50),
       "Sequences of a training step over all ranks, checked at launch; 0: any",
       {{"train_batch_size"}}},
  };
}

std::vector<Setting> MeshRows() {
  return {
      {"world_size",
       kMesh,
       "N",
       Integer(FT_OPTION(worldSize), 1, 1 << 20),
       "Ranks",
       {{"num_processes", WorldSizeOfProcesses()}}},
      {"mesh", kMesh, "replica:R,shard:S", MeshValue(),
       "Ranks by axis; none: as the strategy has it at launch"},
  };
}

}  // namespace ftc
