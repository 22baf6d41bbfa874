// How long steps took, and whether that is what the plan was reckoned to take.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "runtime/metrics/step_metrics.h"
#include "runtime/plan/bind.h"
#include "runtime/plan/plan.pb.h"

namespace ft {

// Of steps that are like each other: not the first ones of a run, in which memory, caches and clocks settle,
// nor those that are traced. Adding allocates nothing.
class SteadySteps {
 public:
  static constexpr int64_t kSettling = 5;                 // steps
  static constexpr int64_t kCompared = 20, kFewest = 10;  // after which, and of how many, they are compared

  explicit SteadySteps(int64_t traced_steps);

  // The next step of the run.
  void Add(const StepMetrics& metrics);

  int64_t steps() const { return steps_; }  // of the run
  int64_t counted() const { return counted_; }
  bool AreComparable() const { return steps_ >= kCompared && counted_ >= kFewest; }
  // The first and the last that were counted, by their numbers in the run from 1.
  int64_t first_number() const { return last_number_ - counted_ + 1; }
  int64_t last_number() const { return last_number_; }
  double MedianMs() const;  // of the last 256; 0: none
  double MedianExposedMs() const;

 private:
  int64_t first_;  // that counts
  int64_t steps_ = 0, counted_ = 0, last_number_ = 0;
  std::vector<double> step_ms_, exposed_ms_;
};

// "..., predicted for h100-ib: ...": what a step took beside what SimulateStep says for the plan's target,
// and which of computation and exposed communication is further off. Empty where nothing was counted, or the
// target is another kind of device.
std::string PredictedLine(const SteadySteps& times, const proto::Plan& plan, const BoundPlan& bound,
                          bool on_gpu);

}  // namespace ft
