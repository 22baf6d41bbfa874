// Everything a user can decide about a compilation. `ftc compile` fills it from train.yaml and its flags.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "runtime/base/cluster_op.h"
#include "runtime/targets/shipped_targets.h"

namespace ft::compiler {

struct UnitOptions {
  std::string wrap = "transformer"; // transformer, size, none, names
  std::vector<std::string>
      names; // wrap = names: globs of layers, each layer matched is a unit, the rest another
  uint64_t minNumParams = 100'000'000; // wrap = size: elements that close a unit
  // Parameters with fewer elements stay gathered at rest, in a unit of their own; 0 for none.
  uint64_t persistenceThreshold = 0;
  std::vector<std::string> frozen;       // globs of parameters
  std::vector<std::string> keepGathered; // globs of units: not released between forward and backward
};

struct OverlapOptions {
  std::string prefetch = "pre"; // pre, post, none, auto
  int64_t forwardPrefetch = 1;  // units gathered ahead of their use in forward
  int64_t limitAllGathers =
      2; // gathered units that may be alive ahead of their use, the one in use included; 0: any number
  double bucketCapMb = 25;   // reductions of gradients that are whole at rest are joined up to this size
  double reduceBucketMb = 0; // those of sharded gradients likewise; 0: not joined
  double gatherBucketMb = 0; // gathers likewise; 0: not joined
  Target target = *FindTarget("cpu"); // that costs are estimated for
  uint64_t memoryBudget = 0;          // bytes per rank that `auto` may use; 0: no limit
  std::string reason;                 // of a rule that stands in for `auto`: why, for ftc explain --schedule
};

struct PrecisionOptions {
  std::string paramDtype = "fp32"; // fp32, bf16, fp16
  std::string reduceDtype = "fp32";
  std::string bufferDtype = "fp32";
  bool masterWeights = true; // fp32 weights beside 16-bit ones; without, bf16 weights are all there is
  // With fp16. 0 means dynamic.
  double lossScale = 0;
  int64_t initialScalePower = 16;
  int64_t lossScaleWindow = 2000;
  int64_t hysteresis = 1;
  double minLossScale = 0; // GradScaler has none

  /// Small gradients vanish in fp16; bf16 has the exponents of f32.
  bool scalesLoss() const { return paramDtype == "fp16" || reduceDtype == "fp16"; }
};

struct OptimizerOptions {
  std::string name = "adamw"; // adamw, adam, sgd
  double beta1 = 0.9;
  double beta2 = 0.95;
  double eps = 1e-8;
  double weightDecay = 0.1;
  double momentum = 0; // sgd
  bool nesterov = false;
  bool stochasticRounding = false; // of bf16 weights without master
  double clip = 1.0;               // largest global gradient norm; 0 does not clip
};

struct OffloadOptions {
  bool optimizer = false;
  bool parameters = false;
  bool activations = false;
};

struct CompileOptions {
  std::string strategy; // a name or an alias of the strategy table
  UnitOptions units;
  OverlapOptions overlap;
  PrecisionOptions precision;
  OptimizerOptions optimizer;
  OffloadOptions offload;
  std::string remat = "none"; // none, every_n:N, segments:K, ops:CLASS[,CLASS], full, budget:BYTES
  int64_t microSteps = 1;     // per training step
  int64_t clusterOps = kMaxClusterValues; // most primitives that run as one kernel
  bool accumulateEach = false;            // communicate gradients in each micro-step, not in the last only
  // The mesh that budgets are meant for.
  int worldSize = 1;
  std::optional<std::pair<int, int>> mesh; // replica, shard
  // Defaults of the run, kept in the plan for ftexec: lr, lr_schedule, warmup_steps, ...
  std::vector<std::pair<std::string, double>> runNumbers;
  std::vector<std::pair<std::string, std::string>> runTexts;
  // Each phase verifies what it leaves. Off for what is compiled to be measured only.
  bool checks = true;
  // Clusters have code in the plan. Takes a while, so not for what is compiled to be looked at.
  bool makesCode = false;
};

} // namespace ft::compiler
