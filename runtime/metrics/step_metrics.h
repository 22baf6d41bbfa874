// What is known about a training step, or an evaluation, once it is done.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "absl/types/span.h"

namespace ft {

// How long the ranks computed in a step, without waiting for each other.
struct ComputeSpread {
  int64_t step = 0;  // which one: the figures of others arrive later
  double min_ms = 0;
  double mean_ms = 0;
  double max_ms = 0;
  int slowest_rank = 0;
};

// What a checkpoint cost the run and this rank.
struct SaveCost {
  double stall_ms = 0;  // that training stood still
  double seconds = 0;   // from its beginning until it was there
  uint64_t bytes = 0;   // written by this rank
};

struct StepMetrics {
  int64_t step = 0;                       // from 0, as in --shuffle=off's formula
  double loss = 0;                        // mean over what micro-steps and all ranks count, before the update
  double grad_norm = 0;                   // global L2 norm before clipping
  double lr = 0;                          // used by this step's update
  double tokens_per_s = 0;                // over all ranks
  double step_ms = 0;                     // wall time of the step, milliseconds
  uint64_t arena_bytes = 0;               // device arena of this rank
  double samples_per_s = 0;               // sequences, over all ranks
  std::optional<double> loss_scale = {};  // of this step; none without loss scaling
  uint64_t host_arena_bytes = 0;          // of this rank
  std::optional<int64_t> counted = {};    // targets that count, over all ranks, where some do not
  // Time in which stream compute waited for communication and copies, milliseconds of the step.
  std::optional<double> exposed_ms = {};
  // Model FLOPs (ModelFlops of the plan) of this rank over what its device could do in that time by its
  // data sheet, 0 to 1; none where that peak is not known.
  std::optional<double> mfu = {};
  std::optional<double> utilization =
      {};                             // of the device as it says itself, 0 to 1, over about the last second
  std::optional<SaveCost> save = {};  // of a checkpoint that was finished since the step before
  std::optional<ComputeSpread> compute = {};  // over the ranks, of the newest step that is known
  bool skipped = false;       // the update was not applied: loss or norm not finite, or nothing counted
  bool counts_tokens = true;  // else tokens_per_s are examples
};

// A mean that a model reports when it is evaluated.
struct EvaluationOutput {
  std::string name;  // "accuracy"
  std::string key;   // "eval_accuracy", of metrics
  std::string tag;   // "eval/accuracy", of curves
  double value = 0;
};

// What is known after an evaluation.
struct EvaluationMetrics {
  int64_t step = 0;                                 // the last training step before it; -1 before any
  double loss = 0;                                  // mean over all targets
  int64_t tokens = 0;                               // targets, over all ranks
  std::string_view counted = "tokens";              // what `tokens` are
  absl::Span<const EvaluationOutput> outputs = {};  // at most 16
};

}  // namespace ft
