// Told of the steps of a training run.
#pragma once

#include <cstdint>

#include "runtime/metrics/step_metrics.h"

namespace ft {

class StepObserver {
 public:
  virtual ~StepObserver() = default;

  // Around each step, by its number in the whole run, from 0. Evaluations run between steps.
  virtual void BeginStep(int64_t step) = 0;
  virtual void EndStep() = 0;
  // Before each program of a step.
  virtual void BeginProgram(int program) = 0;
  // What is known of a step at its end.
  virtual void Count(const StepMetrics& metrics) = 0;
};

}  // namespace ft
