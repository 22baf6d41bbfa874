// When each instruction of a plan would run on a named machine: `ftc explain --schedule` shows it.
//
// Every stream runs its instructions in order, each as soon as those it waits for are done and the host has
// launched it. What runs side by side slows each other down as CostOf says (replay.h).
#pragma once

#include <array>
#include <map>
#include <string>
#include <vector>

#include "runtime/cost/replay.h"
#include "runtime/plan/bind.h"
#include "runtime/plan/plan.pb.h"
#include "runtime/plan/target.h"

namespace ft {

// Of one instruction, in seconds from the beginning of its program.
struct SimulatedInstruction {
  double ready = 0;  // all that it waits for was done; from then to `begin` the host had not launched it
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
  double exposed_seconds = 0;  // `compute` stood still for other streams
  double launch_seconds = 0;   // `compute` stood still until the host had launched what came next
  double slowed_seconds = 0;   // of compute_seconds: what kernels took longer beside transfers
  std::array<double, proto::Stream_ARRAYSIZE> busy_seconds = {};
  std::map<std::string, double> phase_seconds;  // of compute_seconds, by phase of the kernel

  // Another program's totals, `times` times.
  void AddTotals(const SimulatedProgram& other, uint64_t times);
};

// What the instructions of a program ask of their streams, each with those that it waits for: of the replay's
// items, one each, in order.
std::vector<ReplayItem> ReplayItems(const proto::Plan& plan, const Mesh& mesh, const proto::Program& program,
                                    const Target& target);

// `bound` is BindPlan's result for `plan`, which has passed VerifyPlan.
SimulatedProgram SimulateProgram(const proto::Plan& plan, const BoundPlan& bound, int program,
                                 const Target& target);

// Totals of a training step: train_micro as often as it runs, then train_step. No instructions.
SimulatedProgram SimulateStep(const proto::Plan& plan, const BoundPlan& bound, const Target& target);

}  // namespace ft
