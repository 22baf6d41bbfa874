// What fits of each family, and about how long it takes: found out with few compilations.
#pragma once

#include "compiler/tune/families.h"
#include "compiler/tune/trial.h"

#include <limits>
#include <map>
#include <set>
#include <tuple>
#include <utility>
#include <vector>

namespace ft::compiler {

/// Points of which schedules are tried; slower ones are of no interest.
constexpr size_t kScheduled = 24;

constexpr double kNever = std::numeric_limits<double>::infinity();

/// What is known of a point, exactly or about.
struct TuneCandidate {
  TunePoint point;
  double seconds = kNever;

  auto operator<=>(const TuneCandidate &other) const {
    return std::tie(seconds, point) <=> std::tie(other.seconds, other.point);
  }
  bool operator==(const TuneCandidate &other) const = default;
};

class TuneFamilySearch {
public:
  /// All live longer.
  TuneFamilySearch(const TuneRequest &request, const TuneSpace &space, TuneTrials &trials,
                   const TuneProgress &progress);

  /// Errors: those of trials.
  absl::Status run();

  /// Takes note that a point, which was thought to fit, takes `trial`. Whether it was thought so; run() finds
  /// then what it made needless.
  bool reopen(const TunePoint &point, const TuneTrial &trial);

  /// Estimates the fastest choices that nothing was asked of, as they are dominated; of many families. False
  /// where there are none.
  absl::StatusOr<bool> openDominated();

  /// All that was found to fit, by estimates, the fastest first; what is chosen from, or what would change
  /// bits.
  std::vector<TuneCandidate> candidates(bool chosen) const;
  /// What does not fit by so little that another schedule, or a budget, may; the fastest first.
  std::vector<TuneCandidate> near() const;

  const std::vector<TuneFamily> &families() const { return all; }
  const TuneLadder &ladder() const { return steps; }
  bool isChosenFrom(const TuneFamily &family) const {
    return !space.layouts[family.origin.layout].changesBits;
  }
  /// Whether the trial is too large by so little.
  bool isNear(const TuneTrial &trial) const;
  /// The least that kernels alone take of what was compiled; none: kNever.
  double leastKernelSeconds() const;

private:
  struct Open {
    TuneFamily *family;
    TuneChoice choice;
    double bound;
  };

  absl::Status probe();
  absl::Status probeAll();
  absl::Status descend();
  absl::Status tryRecomputation();
  absl::Status estimate(const std::vector<Open> &opens);
  absl::Status estimateInRounds(const std::vector<Open> &opens);
  void note(TuneFamily &family, const TuneChoice &choice, const TuneTrial &trial);
  bool mayFit(const TuneFamily &family, const TuneChoice &choice) const;
  std::optional<size_t> frugalSchedule() const;
  double boundOf(size_t split, size_t remat) const;
  double threshold() const;
  std::vector<Open> openChoices();

  const TuneRequest &request;
  const TuneSpace &space;
  TuneTrials &trials;
  const TuneProgress &progress;
  TuneLadder steps;
  std::vector<TuneFamily> all;
  std::map<std::pair<size_t, size_t>, double>
      kernels;                 // least seconds of kernels alone, by split and recomputation
  std::multiset<double> times; // of all that fits
};

} // namespace ft::compiler
