// How long it takes to train on so many tokens, and what a faster machine would save.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "runtime/cost/simulate.h"
#include "runtime/plan/bind.h"
#include "runtime/plan/plan.pb.h"
#include "runtime/plan/target.h"

namespace ftc {

// What is assumed beside training.
inline constexpr double kSaveEverySeconds = 1800;
inline constexpr int64_t kEvaluateEverySteps = 1000, kEvaluatedBatches = 100;

// A step on a machine that has a tenth more of one rate.
struct FasterRate {
  std::string rate;  // "products", "memory", "links in a node", "links between nodes", "host and copies"
  double step_seconds = 0;
};

struct TrainingSpan {
  uint64_t tokens = 0, tokens_per_step = 0, steps = 0;
  int ranks = 0;
  double step_seconds = 0;
  double save_seconds = 0;        // that training stands still for one: its copy to host memory
  double evaluation_seconds = 0;  // of one; 0 for a plan that has none
  std::vector<FasterRate> faster = {};

  double training_seconds() const { return static_cast<double>(steps) * step_seconds; }
  double evaluating_seconds() const;
  double saving_seconds() const;  // by how often it is saved in all of this
  double seconds() const { return training_seconds() + evaluating_seconds() + saving_seconds(); }
  double rank_hours() const { return seconds() / 3600 * ranks; }
};

// `step` is SimulateStep's of the plan; `snapshot_bytes` those that a rank copies for a checkpoint. The plan
// trains on tokens.
TrainingSpan SpanOf(const ft::proto::Plan& plan, const ft::BoundPlan& bound, const ft::Target& target,
                    const ft::SimulatedProgram& step, uint64_t snapshot_bytes, uint64_t tokens);

// "21.3 days", "5.2 hours", "12.0 minutes", or seconds.
std::string LongTime(double seconds);

std::string SpanText(const TrainingSpan& span, const ft::Target& target);

}  // namespace ftc
