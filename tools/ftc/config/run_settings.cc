// Defaults of the run, which flags of ftexec override.
#include "tools/ftc/config/setting_rows.h"

namespace ftc {
namespace {

constexpr char kRun[] = "Defaults of the run";
constexpr double kMostLr = 3e38;  // f32 in the executor

}  // namespace

std::vector<Setting> RunRows() {
  std::vector<Setting> rows = {
      {"lr",
       kRun,
       "X",
       Number(FT_FIELD(run.lr), {.low = 0, .high = kMostLr}),
       "Learning rate, at its peak",
       {{"learning_rate"},
        {"optimizer.params.lr"},
        {"scheduler.params.warmup_max_lr", OfSchedulers({"warmuplr", "warmupdecaylr"})}}},
      {"lr_schedule",
       kRun,
       "S",
       Word("schedule", FT_FIELD(run.lr_schedule), {"constant", "linear", "cosine"},
            {{"constant_with_warmup", "constant"}}),
       "After warm-up: constant, or decay to min_lr at the last step",
       {{"lr_scheduler_type"}, {"scheduler.type", DeepSpeedScheduler({"constant", "linear", "cosine"})}}},
      {"lr_convention",
       kRun,
       "C",
       Word("convention", FT_FIELD(run.lr_convention), {"transformers", "deepspeed"}),
       "Whose formulas: DeepSpeed's schedules run one step behind, and warm up over 2 steps at least",
       {{"scheduler.type", DeepSpeedScheduler({"deepspeed", "deepspeed", "deepspeed"})}}},
      {"warmup_steps",
       kRun,
       "N",
       Integer(FT_FIELD(run.warmup_steps), 0, kMostSteps),
       "Steps of warm-up",
       {{"scheduler.params.warmup_num_steps"}}},
      {"warmup_ratio", kRun, "X", Number(FT_FIELD(run.warmup_ratio), {.low = 0, .high = 1}),
       "The same as a part of all steps"},
      {"warmup_type",
       kRun,
       "W",
       Word("warm-up", FT_FIELD(run.warmup_type), {"linear", "log"}),
       "How the rate rises: evenly, or with the logarithm of the steps",
       {{"scheduler.params.warmup_type"}}},
      {"warmup_min_lr",
       kRun,
       "X",
       Number(FT_FIELD(run.warmup_min_lr), {.low = 0, .high = kMostLr}),
       "Learning rate that warm-up begins with",
       {{"scheduler.params.warmup_min_lr", OfSchedulers({"warmuplr", "warmupdecaylr"})},
        {"scheduler.params.warmup_min_ratio", OfSchedulers({"warmupcosinelr"}, FractionOfLr())}}},
      {"min_lr",
       kRun,
       "X",
       Number(FT_FIELD(run.min_lr), {.low = 0, .high = kMostLr}),
       "Learning rate at the end of decay",
       {{"scheduler.params.cos_min_ratio", OfSchedulers({"warmupcosinelr"}, FractionOfLr())},
        {"scheduler.params.warmup_min_lr", OnlyOf("WarmupDecayLR")}}},
      {"steps",
       kRun,
       "N",
       Integer(FT_FIELD(run.steps), 0, kMostSteps),
       "Optimizer steps; 0: one pass over the data",
       {{"max_steps", IntegerAbove(0)},
        {"scheduler.params.total_num_steps", OfSchedulers({"warmupdecaylr", "warmupcosinelr"})}}},
      {"seed", kRun, "N", Integer(FT_FIELD(run.seed), 0, kMostSteps), "Seed of everything random"},
      {"max_bad_steps", kRun, "N", Integer(FT_FIELD(run.max_bad_steps), 1, kMostSteps),
       "Steps in a row without a finite loss and gradient that end the run"},
      {"state_dict_type",
       kRun,
       "T",
       Word("state dict", FT_FIELD(run.state_dict_type),
            {"full_state_dict", "sharded_state_dict", "local_state_dict"},
            {{"full", "full_state_dict"}, {"sharded", "sharded_state_dict"}, {"local", "local_state_dict"}}),
       "How checkpoints are written",
       {{"fsdp.fsdp_state_dict_type"}}},
  };
  rows.back().no_effect = "it is kept in the plan; checkpoints do not read it yet";
  return rows;
}

}  // namespace ftc
