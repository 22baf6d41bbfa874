#include "compiler/tune/space.h"

#include "compiler/pipeline/compile.h"
#include "compiler/pipeline/offload.h"
#include "compiler/pipeline/wrap.h"
#include "compiler/shard/strategy.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/bit.h"

#include <algorithm>

#include "fmt/format.h"
#include "runtime/base/setting_value.h"
#include "runtime/base/status_macros.h"

namespace ft::compiler {

namespace {

constexpr const char *kRemats[] = {"none", "ops:norms", "ops:mlp,norms", "full"};
constexpr char kNone[] = "none", kAuto[] = "auto";
constexpr const char *kOffloads[] = {"none",
                                     "optimizer",
                                     "optimizer:step",
                                     "activations",
                                     "optimizer,parameters",
                                     "optimizer,parameters,activations"};
constexpr const char *kEvaluationOffloads[] = {"none", "parameters"};
constexpr const char *kWraps[] = {"transformer", "none"};
// Biases and norms, as DeepSpeed has it by default.
constexpr uint64_t kPersistenceThresholds[] = {0, 100000};
const TuneSchedule kSchedules[] = {{"pre", 2, 0},   {"pre", 3, 0},  {"pre", 0, 0},  {"pre", 2, 25},
                                   {"pre", 0, 100}, {"post", 2, 0}, {"none", 2, 0}, {"auto", 2, 0}};
/// More micro-steps hold nobody up, and a table needs an end.
constexpr int64_t kMostMicroSteps = 1024;

/// That a model can be compiled for.
constexpr int64_t kMostBatch = int64_t{1} << 30;

/// Of buckets that the user decided.
constexpr double kAsGiven = -1;

bool isPowerOfTwo(int number) { return llvm::has_single_bit(static_cast<unsigned>(number)); }

/// Shard groups inside of a node, or of whole nodes.
bool isWholeNodes(int shard, int perNode) { return perNode % shard == 0 || shard % perNode == 0; }

/// Whether a strategy of these axes has ranks along no others.
bool hasAxes(Axes axes, const Mesh &mesh) {
  return axes == Axes::Both || (axes == Axes::Replica ? mesh.shard : mesh.replica) == 1;
}

class SpaceMaker {
public:
  SpaceMaker(const TuneRequest &request, const ModelOutline &outline)
      : request(request), base(request.base), outline(outline) {}

  absl::StatusOr<TuneSpace> make() {
    FT_RETURN_IF_ERROR(addLayouts());
    FT_RETURN_IF_ERROR(addSplits());
    addRecomputation();
    addWraps();
    addSchedules();
    return std::move(space);
  }

private:
  bool isFixed(const char *setting) const { return request.fixed.count(setting) != 0; }

  std::optional<Mesh> fixedMesh() const {
    if (!isFixed("mesh") || !base.mesh)
      return std::nullopt;
    return Mesh{base.mesh->first, base.mesh->second};
  }

  absl::Status addLayouts() {
    for (const Strategy &strategy : strategies())
      if (isFixed("strategy") ? strategy.name == base.strategy
                              : base.worldSize > 1 || strategy.axes == Axes::Replica)
        addMeshes(strategy);
    if (llvm::all_of(space.layouts, [](const TuneLayout &layout) { return layout.changesBits; }))
      for (TuneLayout &layout : space.layouts)
        layout.changesBits = false;
    if (!space.layouts.empty())
      return absl::OkStatus();
    if (const std::optional<Mesh> mesh = fixedMesh())
      return absl::InvalidArgumentError(fmt::format(
          "--strategy={} uses one axis of a mesh: leave out --mesh={}, or take one that uses both, such as "
          "hybrid_shard",
          base.strategy, MeshText(*mesh)));
    return absl::InvalidArgumentError("no mesh of " + std::to_string(base.worldSize) +
                                      " ranks is one for --strategy=" + base.strategy);
  }

  void addMeshes(const Strategy &strategy) {
    const int ranks = base.worldSize, perNode = static_cast<int>(base.target.ranks_per_node());
    const bool two = strategy.axes == Axes::Both;
    const std::optional<Mesh> fixed = fixedMesh();
    for (int shard = 1; shard <= ranks; ++shard) {
      if (ranks % shard != 0)
        continue;
      const Mesh mesh{.replica = ranks / shard, .shard = shard};
      const bool usual = !two || (shard > 1 && shard < ranks && isWholeNodes(shard, perNode));
      if (!hasAxes(strategy.axes, mesh) || (fixed ? mesh != *fixed : !usual))
        continue;
      const bool rounds = two && (!isPowerOfTwo(shard) || base.reduceDtype != "fp32");
      space.layouts.push_back({strategy.name.str(), mesh, rounds});
    }
  }

  int64_t ownBatch() const { return base.batch != 0 ? base.batch : outline.batch; }
  // An evaluation has no micro-steps.
  int64_t ownMicroSteps() const { return base.evaluate ? 1 : base.microSteps; }
  bool microStepsStay() const { return base.evaluate || isFixed("micro_steps"); }
  bool isBatchKept() const { return !outline.batchKeeper.empty(); }

  bool isOpen(const TuneSplit &split) const {
    const bool oneOnly = isFixed("batch") || isBatchKept() || microStepsStay();
    return (!isFixed("batch") || split.batch == ownBatch()) &&
           (!isBatchKept() || split.batch == outline.batch) &&
           (!microStepsStay() || split.microSteps == ownMicroSteps()) &&
           (oneOnly || split.microSteps <= kMostMicroSteps);
  }

  absl::Status addSplits() {
    const int64_t ranks = base.worldSize;
    const int64_t global =
        request.globalBatch != 0 ? request.globalBatch : ownBatch() * ownMicroSteps() * ranks;
    if (global % ranks != 0)
      return absl::InvalidArgumentError("a global batch of " + std::to_string(global) +
                                        " sequences is no multiple of " + std::to_string(ranks) + " ranks");
    const int64_t ofRank = global / ranks;
    space.batchKeeper = outline.batchKeeper;
    space.blocks = outline.blocks;
    space.modelBatch = outline.batch;
    for (int64_t one = 1; one <= ofRank / one; ++one) {
      if (ofRank % one != 0)
        continue;
      for (const TuneSplit &split : {TuneSplit{one, ofRank / one}, TuneSplit{ofRank / one, one}})
        if (isOpen(split) && split.batch <= kMostBatch)
          space.splits.push_back(split);
    }
    llvm::sort(space.splits, [](const TuneSplit &a, const TuneSplit &b) { return a.batch > b.batch; });
    const auto equal = [](const TuneSplit &a, const TuneSplit &b) { return a.batch == b.batch; };
    space.splits.erase(std::unique(space.splits.begin(), space.splits.end(), equal), space.splits.end());
    return space.splits.empty() ? noSplit(global, ofRank) : absl::OkStatus();
  }

  /// Of a rank's sequences, that they are none of the splits which are open. Begins with the place of the op
  /// that keeps the batch.
  absl::Status noSplit(int64_t global, int64_t ofRank) const {
    if (isBatchKept() && isFixed("batch") && ownBatch() != outline.batch)
      return absl::InvalidArgumentError(fmt::format("{}; so the batch of a rank is {}, not {}",
                                                    outline.batchKeeper, outline.batch, ownBatch()));
    const int64_t batch = isBatchKept() ? outline.batch : ownBatch(), steps = ownMicroSteps();
    const char *plural = steps == 1 ? "" : "s";
    const bool batchStays = isBatchKept() || isFixed("batch");
    const std::string are = !microStepsStay() ? fmt::format("no whole number of micro-steps of {}", batch)
                            : batchStays      ? fmt::format("not {} micro-step{} of {}", steps, plural, batch)
                                              : fmt::format("no multiple of {} micro-step{}", steps, plural);
    return absl::InvalidArgumentError(
        fmt::format("{}a rank has {} sequences of the global batch of {}, which are {}",
                    isBatchKept() ? outline.batchKeeper + "; " : "", ofRank, global, are));
  }

  /// Of an evaluation nothing is kept for backward, and parameters are all there is.
  void addRecomputation() {
    space.remats = {isFixed("remat") || !base.evaluate ? base.remat : kNone};
    if (!isFixed("remat") && !base.evaluate) {
      space.remats.assign(std::begin(kRemats), std::end(kRemats));
      if (request.memoryBytes != 0)
        space.remats.push_back("budget:" + std::to_string(request.memoryBytes));
    }
    // A CPU rank's host memory is that of its device.
    if (isFixed("offload") || !base.target.cuda())
      space.offloads = {offloadText(base)};
    else if (base.evaluate)
      space.offloads.assign(std::begin(kEvaluationOffloads), std::end(kEvaluationOffloads));
    else
      space.offloads.assign(std::begin(kOffloads), std::end(kOffloads));
  }

  void addWraps() {
    const bool together = base.worldSize == 1; // what is gathered has no meaning
    std::vector<std::string> wraps = {wrapText(base)};
    if (!isFixed("wrap") && !together)
      wraps.assign(std::begin(kWraps), std::end(kWraps));
    std::vector<uint64_t> thresholds = {base.persistenceThreshold};
    if (!isFixed("persistence_threshold") && !together)
      thresholds.assign(std::begin(kPersistenceThresholds), std::end(kPersistenceThresholds));
    for (const std::string &wrap : wraps)
      for (const uint64_t threshold : thresholds)
        space.wraps.push_back({wrap, threshold});
  }

  void addSchedules() {
    std::set<std::tuple<std::string, int64_t, double>> known;
    for (TuneSchedule schedule : kSchedules) {
      if (isFixed("prefetch"))
        schedule.prefetch = base.prefetch;
      if (isFixed("limit_all_gathers"))
        schedule.limitAllGathers = base.limitAllGathers;
      const bool asGiven =
          isFixed("gather_bucket_mb") || isFixed("reduce_bucket_mb") || isFixed("bucket_cap_mb");
      schedule.bucketCapMb = asGiven ? base.bucketCapMb : std::max(base.bucketCapMb, schedule.bucketMb);
      if (asGiven)
        schedule.bucketMb = kAsGiven;
      schedule.memoryBudget = base.memoryBudget;
      if (schedule.prefetch == kAuto && schedule.memoryBudget == 0)
        schedule.memoryBudget = request.memoryBytes;
      if (known.insert({schedule.prefetch, schedule.limitAllGathers, schedule.bucketMb}).second)
        space.schedules.push_back(schedule);
    }
  }

  const TuneRequest &request;
  const CompileOptions &base;
  const ModelOutline &outline;
  TuneSpace space;
};

} // namespace

uint64_t TuneSpace::size() const {
  return uint64_t{layouts.size()} * splits.size() * remats.size() * offloads.size() * wraps.size() *
         schedules.size();
}

absl::StatusOr<TuneSpace> tuneSpaceOf(const TuneRequest &request) {
  FT_ASSIGN_OR_RETURN(const ModelOutline outline, outlineModel(request.model, request.base));
  return SpaceMaker(request, outline).make();
}

CompileOptions optionsAt(const TuneSpace &space, const TunePoint &point, const CompileOptions &base) {
  CompileOptions options = base;
  const TuneLayout &layout = space.layouts[point.layout];
  options.strategy = layout.strategy;
  options.mesh = {layout.mesh.replica, layout.mesh.shard};
  options.worldSize = layout.mesh.world_size();
  options.batch = space.splits[point.split].batch;
  options.microSteps = space.splits[point.split].microSteps;
  options.remat = space.remats[point.remat];
  const std::string &offload = space.offloads[point.offload];
  setOffload(offload == kNone ? std::vector<std::string>() : SplitList(offload), options);
  // Patterns of names are as in `base`.
  if (const std::string &wrap = space.wraps[point.wrap].wrap; wrap != wrapText(base))
    options.wrap = wrap;
  options.persistenceThreshold = space.wraps[point.wrap].persistenceThreshold;
  const TuneSchedule &schedule = space.schedules[point.schedule];
  options.prefetch = schedule.prefetch;
  options.limitAllGathers = schedule.limitAllGathers;
  options.bucketCapMb = schedule.bucketCapMb;
  options.memoryBudget = schedule.memoryBudget;
  if (schedule.bucketMb != kAsGiven)
    options.gatherBucketMb = options.reduceBucketMb = schedule.bucketMb;
  return options;
}

std::vector<std::pair<std::string, std::string>> settingsAt(const TuneSpace &space, const TunePoint &point) {
  const TuneLayout &layout = space.layouts[point.layout];
  const TuneSplit &split = space.splits[point.split];
  const TuneWrap &wrap = space.wraps[point.wrap];
  const TuneSchedule &schedule = space.schedules[point.schedule];
  std::vector<std::pair<std::string, std::string>> settings = {
      {"strategy", layout.strategy},
      {"mesh", MeshText(layout.mesh)},
      {"batch", std::to_string(split.batch)},
      {"micro_steps", std::to_string(split.microSteps)},
      {"remat", space.remats[point.remat]},
      {"offload", space.offloads[point.offload]},
      {"wrap", wrap.wrap},
      {"persistence_threshold", std::to_string(wrap.persistenceThreshold)},
      {"prefetch", schedule.prefetch},
      {"limit_all_gathers", std::to_string(schedule.limitAllGathers)}};
  if (schedule.prefetch == kAuto && schedule.memoryBudget != 0)
    settings.emplace_back("memory_budget", std::to_string(schedule.memoryBudget));
  if (schedule.bucketMb == kAsGiven)
    return settings;
  settings.emplace_back("gather_bucket_mb", ShowNumber(schedule.bucketMb));
  settings.emplace_back("reduce_bucket_mb", ShowNumber(schedule.bucketMb));
  settings.emplace_back("bucket_cap_mb", ShowNumber(schedule.bucketCapMb));
  return settings;
}

bool isDistinct(const TuneSpace &space, const TunePoint &point) {
  const TuneLayout &layout = space.layouts[point.layout];
  const bool transfers = layout.mesh.world_size() > 1 || space.offloads[point.offload] != "none";
  const bool slices = layout.mesh.shard > 1;
  // Nothing is gathered, joined or kept gathered where all is whole.
  return (transfers || point.schedule == 0) &&
         (slices || space.wraps[point.wrap].persistenceThreshold == space.wraps.front().persistenceThreshold);
}

} // namespace ft::compiler
