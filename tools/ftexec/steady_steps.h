// How long steps took, and whether that is what the plan was reckoned to take.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "runtime/executor/instruction_times.h"
#include "runtime/metrics/step_metrics.h"
#include "runtime/plan/bind.h"
#include "runtime/plan/plan.pb.h"

namespace ft {

// Of steps that are like each other: not the first ones of a run, in which memory, caches and clocks settle,
// nor those that are observed. Adding allocates nothing.
class SteadySteps {
 public:
  static constexpr int64_t kSettling = 5;                 // steps
  static constexpr int64_t kCompared = 20, kFewest = 10;  // after which, and of how many, they are compared

  explicit SteadySteps(int64_t traced_steps);

  // The step of this number in the run does not count, either.
  void LeaveOut(int64_t step) { left_out_ = step; }

  // The next step of the run.
  void Add(const StepMetrics& metrics);

  int64_t steps() const { return steps_; }  // of the run
  int64_t counted() const { return counted_; }
  bool AreComparable() const { return steps_ >= kCompared && counted_ >= kFewest; }
  // The first and the last that were counted, by their numbers in the run from 1.
  int64_t first_number() const { return first_number_; }
  int64_t last_number() const { return last_number_; }
  double MedianMs() const;  // of the last 256; 0: none
  double MedianExposedMs() const;

 private:
  int64_t first_;  // that counts
  int64_t left_out_ = -1;
  int64_t steps_ = 0, counted_ = 0, first_number_ = 0, last_number_ = 0;
  std::vector<double> step_ms_, exposed_ms_;
};

// Whether a run can be compared with what its plan was reckoned to take: the target is this kind of device.
bool IsPredicted(const proto::Plan& plan, bool on_gpu);

// "..., predicted for h100-ib: ...": what a step took beside what SimulateStep says for the plan's target,
// which of computation and exposed communication is further off, and where `observed` has measured a step,
// which kind of instruction. Empty where nothing was counted, or nothing is predicted.
std::string PredictedLine(const SteadySteps& times, const InstructionTimes* observed, const proto::Plan& plan,
                          const BoundPlan& bound, bool on_gpu);

}  // namespace ft
