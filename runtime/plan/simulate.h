// When each instruction of a plan would run on a named machine: `ftc explain --schedule` shows it.
//
// Every stream runs its instructions in order, each as soon as those it waits for are done. Kernels do not
// slow transfers down, nor transfers each other: a model to compare schedules with, not to predict seconds.
#pragma once

#include <array>
#include <vector>

#include "runtime/plan/bind.h"
#include "runtime/plan/plan.pb.h"
#include "runtime/plan/target.h"

namespace ft {

// Of one instruction, in seconds from the beginning of its program.
struct SimulatedInstruction {
  double begin = 0;
  double end = 0;
  // Of a transfer: how long `compute` stood still for it, and the wait at which (-1: it is never waited for).
  // A wait for several transfers is blamed on the last one that ends.
  double exposed = 0;
  int waited_at = -1;
};

struct SimulatedProgram {
  std::vector<SimulatedInstruction> instructions;
  double seconds = 0;          // until all streams are done
  double compute_seconds = 0;  // of kernels
  double exposed_seconds = 0;  // `compute` stood still
  std::array<double, proto::Stream_ARRAYSIZE> busy_seconds = {};

  // Another program's totals, `times` times.
  void AddTotals(const SimulatedProgram& other, uint64_t times);
};

// `bound` is BindPlan's result for `plan`, which has passed VerifyPlan.
SimulatedProgram SimulateProgram(const proto::Plan& plan, const BoundPlan& bound, int program,
                                 const Target& target);

// Totals of a training step: train_micro as often as it runs, then train_step. No instructions.
SimulatedProgram SimulateStep(const proto::Plan& plan, const BoundPlan& bound, const Target& target);

}  // namespace ft
