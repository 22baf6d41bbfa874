// Everything a user can decide about a compilation. `ftc compile` fills it from train.yaml and its flags.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "runtime/base/cluster_op.h"
#include "runtime/plan/plan.pb.h"
#include "runtime/targets/shipped_targets.h"

namespace ft::compiler {

struct CompileOptions {
// A field for each row, which says what it means.
#define FT_SETTING(TYPE, NAME, DEFAULT, ...) TYPE NAME = DEFAULT;
#define FT_FIELD(TYPE, NAME, DEFAULT, ...) TYPE NAME = DEFAULT;
#include "runtime/base/settings.def"

  Target target = *FindTarget("cpu");      // that costs are estimated for
  std::optional<std::pair<int, int>> mesh; // replica, shard: what budgets are meant for
  // Of a rule that stands in for prefetch=auto: why, for ftc explain --schedule.
  std::string scheduleReason;
  // Defaults of the run, kept in the plan for ftexec: lr, lr_schedule, warmup_steps, ...
  std::vector<std::pair<std::string, double>> runNumbers;
  std::vector<std::pair<std::string, std::string>> runTexts;
  // Each stage verifies what it leaves. Off for what is compiled to be measured only.
  bool checks = true;
  // Clusters have code in the plan. Takes a while, so not for what is compiled to be looked at.
  bool makesCode = false;
  // Of layers that repeat so many blocks, two at least; 0: all. For what is compiled to be measured only.
  int64_t keptBlocks = 0;

  /// The type that is computed with, and that of activations.
  proto::DType computeType() const {
    return paramDtype == "bf16" ? proto::BF16 : paramDtype == "fp16" ? proto::F16 : proto::F32;
  }

  /// Backward begins with the mean over ranks: their sum in 16 bits would be rounded where it is made, and
  /// might overflow. In fp32 the update makes the mean, as accurately and with the bits of one rank.
  bool seedsMean() const { return reduceDtype != "fp32"; }

  /// Small gradients vanish in fp16; bf16 has the exponents of f32.
  bool scalesLoss() const { return paramDtype == "fp16" || reduceDtype == "fp16"; }
};

} // namespace ft::compiler
