// The table that a search chooses from: every combination of a few settings.
#pragma once

#include "compiler/pipeline/options.h"

#include "absl/status/statusor.h"
#include "runtime/plan/mesh.h"

#include <cstdint>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace ft::compiler {

struct TuneRequest {
  std::string model;   // its file
  CompileOptions base; // what is not chosen: precision, optimizer, target, ranks
  // Settings, by name, that the user has decided: they are as in `base`.
  std::set<std::string> fixed;
  uint64_t memoryBytes = 0; // of a rank's device, with what lies beside its arena; 0: any
  uint64_t hostBytes = 0;   // of a rank's arena in host memory; 0: any
  bool exhaustive = false;  // every point is compiled whole
  int64_t globalBatch = 0;  // sequences of a step over all ranks; 0: as the model and `base` have it
};

/// Where parameters lie, and the ranks by axis.
struct TuneLayout {
  std::string strategy;
  Mesh mesh;
  // Sums over ranks are rounded between two stages where others' are not: shown, never chosen. Where all of
  // the table are, whoever fixed strategy or mesh has chosen those bits.
  bool changesBits = false;
};

/// A rank's part of the global batch.
struct TuneSplit {
  int64_t batch = 1;
  int64_t microSteps = 1;
};

struct TuneWrap {
  std::string wrap; // as --wrap
  uint64_t persistenceThreshold = 0;
};

struct TuneSchedule {
  std::string prefetch;
  int64_t limitAllGathers = 2;
  // MiB that gathers and sharded reductions are joined up to, and whole ones.
  double bucketMb = 0, bucketCapMb = 25;
  uint64_t memoryBudget = 0; // that prefetch=auto stays within; 0: any
};

/// Choices, the first of each what is tried before others. Ladders of remat and offload: those further on
/// take less memory and more time.
struct TuneSpace {
  std::vector<TuneLayout> layouts;
  std::vector<TuneSplit> splits;
  std::vector<std::string> remats;   // as --remat
  std::vector<std::string> offloads; // as --offload
  std::vector<TuneWrap> wraps;
  std::vector<TuneSchedule> schedules;
  int64_t modelBatch = 0;  // that the model is written for
  int64_t blocks = 0;      // of the model's layers that repeat (ModelOutline)
  std::string batchKeeper; // why the batch of a rank is the model's; empty: it is not

  uint64_t size() const;
};

/// By number in the lists.
struct TunePoint {
  size_t layout = 0, split = 0, remat = 0, offload = 0, wrap = 0, schedule = 0;

  auto operator<=>(const TunePoint &) const = default;
};

/// Errors: those of outlineModel; InvalidArgument for a global batch that the ranks cannot share, a strategy
/// or a mesh that they cannot have.
absl::StatusOr<TuneSpace> tuneSpaceOf(const TuneRequest &request);

/// Whether the point is not another one under another name, and can be at all.
bool isDistinct(const TuneSpace &space, const TunePoint &point);

CompileOptions optionsAt(const TuneSpace &space, const TunePoint &point, const CompileOptions &base);

/// Settings of a point as text, by name, that differ from point to point.
std::vector<std::pair<std::string, std::string>> settingsAt(const TuneSpace &space, const TunePoint &point);

} // namespace ft::compiler
