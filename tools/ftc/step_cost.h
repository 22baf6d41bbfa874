// What a step costs on a target, as numbers that people compare.
#pragma once

#include <cstdint>
#include <string>

#include "runtime/cost/simulate.h"
#include "runtime/plan/beside_arena.h"
#include "runtime/plan/report.h"
#include "runtime/plan/target.h"

namespace ftc {

// The part of a device's memory above which it is tight: allocators and drivers have little left then, and
// steps of other stacks stall (PyTorch frees and allocates again); ours do not, but what lies beside an arena
// is an estimate.
inline constexpr double kTight = 0.93;

// Whether the arena of a rank and what lies beside it (context, libraries, the communicators' buffers) fit
// the memory of its device.
enum class Fit { kUnknown, kYes, kTight, kNo };

Fit FitOf(const ft::Target& target, uint64_t arena_bytes, uint64_t beside_bytes);

// "yes", "tight", "no"; "-" where the target's memory is not known.
const char* Name(Fit fit);

struct StepCost {
  double seconds = 0;
  double seconds_low = 0, seconds_high = 0;  // UncertaintyOf around it; both 0 where nothing was measured
  double exposed_seconds = 0;                // computation waited for communication and copies
  double tokens_per_s = 0;                   // of one rank
  double mfu = 0;  // model FLOPs by the data sheet's peak of the type computed with; 0: peak not known
  ft::BesideArena beside = {};
  Fit fit = Fit::kUnknown;
};

StepCost StepCostOf(const ft::proto::Plan& plan, const ft::BoundPlan& bound, const ft::SimulatedProgram& step,
                    const ft::Target& target);

// What a user should know about the memory of a plan that was just compiled, in one line: that it does not
// fit its target, or hardly; empty when it does, or nothing is known.
std::string MemoryRemark(const ft::proto::Plan& plan);

}  // namespace ftc
