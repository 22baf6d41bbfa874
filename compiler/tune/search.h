// The fastest points of the table within the memory.
//
// A family is a layout, a split of the batch and a way to wrap; in it recomputation and offload trade time
// for memory (family_search.h). Points whose kernels alone take the least come first; one whose kernels alone
// take longer than what has been found is not compiled. Schedules are tried for the best of what is left,
// budgets of recomputation where a point without any does not fit. What is returned was compiled whole and is
// exact.
#pragma once

#include "compiler/tune/space.h"
#include "compiler/tune/trial.h"

#include <functional>
#include <string>
#include <vector>

namespace ft::compiler {

struct TuneRow {
  TunePoint point;
  TuneTrial trial;
};

/// Points that were not chosen, for one reason.
struct TuneRejection {
  std::string what = {}; // "no_shard", "recomputation and offload"
  uint64_t points = 0;
  std::string why = {};
};

struct TuneResult {
  std::vector<TuneRow> best = {}; // the fastest first
  std::vector<TuneRow> front =
      {}; // no other of the front is as fast with as little memory; the fastest first
  std::vector<TuneRow> beside = {}; // fast ones that would change bits
  std::vector<TuneRejection> rejections = {};
  double boundSeconds = 0; // the least that kernels alone take, of what was compiled
  int compilations = 0;
};

/// Part in [0, 1] of the work, about, and what is done now.
using TuneProgress = std::function<void(double done, const std::string &what)>;

/// The same for every number of cores. Errors: those of compiling; a table of which nothing fits is no error,
/// but a result without rows.
absl::StatusOr<TuneResult> searchTuneSpace(const TuneRequest &request, const TuneSpace &space,
                                           const TuneProgress &progress);

} // namespace ft::compiler
