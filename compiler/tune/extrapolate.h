// What a model with all its layers takes, from two with few of them.
#pragma once

#include "compiler/tune/trial.h"
#include "runtime/plan/plan.pb.h"

#include <vector>

namespace ft::compiler {

/// Things that ranks have in turn (SizeExpr::SHARE): how many, and what a rank takes for one.
struct Turns {
  uint64_t count;
  double seconds;
};

/// Of a plan, in the order of its programs.
std::vector<Turns> turnsOf(const proto::Plan &plan, const Mesh &mesh, const Target &target);

/// A trial of a model with some of its layers.
struct Sample {
  TuneTrial trial;
  std::vector<Turns> turns;
};

/// Of a model with `blocks` layers, when that of `less` has `kept` of them and that of `more` one more: each
/// further one adds as much, but for the time of what ranks do in turn, which grows by steps. Its bytes are
/// taken to grow evenly, as they do over many layers.
TuneTrial extrapolated(Sample less, Sample more, int64_t kept, int64_t blocks);

} // namespace ft::compiler
