// What a point of the table comes to: compiled, bound and replayed.
#pragma once

#include "compiler/tune/space.h"

#include "runtime/plan/plan.pb.h"

#include <atomic>
#include <map>
#include <mutex>
#include <optional>

namespace ft::compiler {

/// Of a step of one rank.
struct TuneTrial {
  std::string refused = {}; // why it cannot be compiled; empty: all else is there
  Mesh mesh = {};
  double seconds = 0;
  double exposedSeconds = 0; // computation waited for communication and copies
  // Kernels of forward, backward and recomputation with the device for themselves: no schedule is faster.
  double kernelSeconds = 0;
  double modelFlops = 0;
  double tokens = 0;
  uint64_t arenaBytes = 0;  // of the device
  uint64_t deviceBytes = 0; // with what lies beside it
  uint64_t hostBytes = 0;
};

/// Compiles points and keeps what came out; from any thread.
class TuneTrials {
public:
  /// `space` and `request` live longer.
  TuneTrials(const TuneRequest &request, const TuneSpace &space);

  /// All layers compiled. Errors: those of compileModel but for InvalidArgument, which is a trial that is
  /// refused.
  absl::StatusOr<TuneTrial> exact(const TunePoint &point);

  /// The same from plans with few of the layers that repeat, as if each further one added as much as the
  /// last; exact where nothing is left out, and of what is settled by compiling whole models (a budget,
  /// prefetch=auto). Two compilations serve all meshes of a strategy.
  absl::StatusOr<TuneTrial> estimate(const TunePoint &point);

  /// A configuration that is no point, as it is.
  absl::StatusOr<TuneTrial> measure(const CompileOptions &options) const;

  bool leavesOutLayers() const { return kept != 0; }
  int compilations() const { return compiled; }

private:
  /// Of one point and its fellows on other meshes: made once, by whoever comes first.
  struct Estimate {
    std::mutex making;
    std::optional<absl::StatusOr<std::vector<TuneTrial>>> trials; // by sameStrategy
  };

  absl::StatusOr<proto::Plan> compile(const CompileOptions &options) const;
  absl::StatusOr<std::vector<TuneTrial>> estimateMeshes(const TunePoint &point) const;
  std::vector<size_t> sameStrategy(size_t layout) const;

  const TuneRequest &request;
  const TuneSpace &space;
  int64_t kept = 0; // blocks of the smaller of the two plans that stand for all; 0: all are compiled
  std::mutex mutex;
  std::map<TunePoint, TuneTrial> exacts;
  std::map<TunePoint, Estimate> estimates; // of the first of each strategy's layouts
  mutable std::atomic<int> compiled = 0;
};

/// Whether it can be compiled, and stays within the memory of device and host.
bool fits(const TuneTrial &trial, const TuneRequest &request);

} // namespace ft::compiler
