// How far a step may be off that was reckoned with what was measured on the machine.
#pragma once

#include <string>
#include <vector>

#include "runtime/cost/simulate.h"
#include "runtime/plan/bind.h"
#include "runtime/plan/plan.pb.h"
#include "runtime/plan/target.h"

namespace ft {

// Where a step's time comes from, in seconds: kernels that were timed as they are, those that a form
// reckons, by what holds them up, and what computation waits for.
struct StepSources {
  double timed = 0;
  double products = 0, attention = 0, memory = 0;
  double stated = 0;                   // of `products` those of a type that was not measured
  double collectives = 0, copies = 0;  // exposed
  double by_links = 0;  // of `collectives` what groups need that were not measured: links say what it takes

  double reckoned() const { return products + attention + memory; }
  double exposed() const { return collectives + copies; }
  double total() const { return timed + reckoned() + exposed(); }
};
StepSources SourcesOf(const proto::Plan& plan, const BoundPlan& bound, const Target& target,
                      const SimulatedProgram& step);

// What models are off beyond the spread of what they rest on, as parts: kernels in another place than where
// they were timed; forms for kernels of other shapes; communication that others disturb. The first two are
// such that in test/calibration/grid.py on two shared cores 90% and all of the medians lay inside, of what is
// meant to be nine of ten; the others are guesses: also of what was not measured where all else was.
inline constexpr double kTimedError = 0.075, kFormError = 0.11, kExposedError = 0.1;
inline constexpr double kNominalError = 0.3;
inline constexpr double kMostUncertain = 0.15;

// Half of the interval that is meant to hold nine of ten medians of steps after the fifth, as part of the
// step: the errors above, each by its share of the step, and the spreads of what was measured, by shares,
// together as the root of their squares; at most kMostUncertain. 0 where nothing was measured.
double UncertaintyOf(const StepSources& sources, const Target::Measured& measured);

// One line for each thing that the time of a step assumes: of how the machine was measured, where this is
// not how `bound` runs; of data, where the cost of kernels depends on it.
std::vector<std::string> AssumptionsOf(const proto::Plan& plan, const BoundPlan& bound, const Target& target);

}  // namespace ft
