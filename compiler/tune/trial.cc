#include "compiler/tune/trial.h"

#include "compiler/pipeline/compile.h"
#include "compiler/remat/policy.h"
#include "compiler/tune/extrapolate.h"

#include <limits>

#include "runtime/base/status_macros.h"
#include "runtime/cost/simulate.h"
#include "runtime/plan/beside_arena.h"
#include "runtime/plan/bind.h"
#include "runtime/plan/report.h"

namespace ft::compiler {

namespace {

/// Beyond the layers that a schedule reaches ahead, and the first and the last, which have other neighbours.
constexpr int64_t kKeptBlocks = 4;
/// Fewer are compiled as quickly.
constexpr int64_t kFewBlocks = kKeptBlocks + 3;

constexpr const char *kOptimizerPhase = "optimizer";

TuneTrial refusal(const absl::Status &status) {
  TuneTrial trial;
  trial.refused = std::string(status.message());
  return trial;
}

/// About: with as many bytes as are live at once, which packing seldom misses by much and takes long to find
/// out.
enum class Packing { kExact, kAbout };

absl::StatusOr<TuneTrial> trialOf(const proto::Plan &plan, const Mesh &mesh, const Target &target,
                                  Packing packing) {
  TuneTrial trial;
  const DeviceClass device = DeviceOf(target);
  const bool about = packing == Packing::kAbout;
  const uint64_t enough = about ? std::numeric_limits<uint64_t>::max() : 0;
  FT_ASSIGN_OR_RETURN(const BoundPlan bound, BindPlan(plan, mesh, device, enough));
  const SimulatedProgram step = SimulateStep(plan, bound, target);
  trial.mesh = mesh;
  trial.seconds = step.seconds;
  trial.exposedSeconds = step.exposed_seconds;
  const auto optimizer = step.phase_seconds.find(kOptimizerPhase);
  trial.kernelSeconds = step.compute_seconds - step.slowed_seconds -
                        (optimizer == step.phase_seconds.end() ? 0 : optimizer->second);
  trial.modelFlops = static_cast<double>(ModelFlops(plan));
  trial.tokens = static_cast<double>(plan.batch()) * static_cast<double>(plan.seq_len()) *
                 std::max(1u, plan.micro_steps());
  trial.arenaBytes = about ? bound.device.max_live_bytes : bound.arena_bytes();
  trial.deviceBytes = trial.arenaBytes + BesideArenaOf(target, plan, mesh, device).total();
  trial.hostBytes = bound.host_arena_bytes();
  return trial;
}

bool isSettledWhole(const CompileOptions &options) {
  return isBudget(options.remat) || options.prefetch == "auto" || options.memoryBudget != 0;
}

} // namespace

bool fits(const TuneTrial &trial, const TuneRequest &request) {
  return trial.refused.empty() && (request.memoryBytes == 0 || trial.deviceBytes <= request.memoryBytes) &&
         (request.hostBytes == 0 || trial.hostBytes <= request.hostBytes);
}

TuneTrials::TuneTrials(const TuneRequest &request, const TuneSpace &space) : request(request), space(space) {
  if (space.blocks > kFewBlocks && !request.exhaustive)
    kept = kKeptBlocks;
}

absl::StatusOr<proto::Plan> TuneTrials::compile(const CompileOptions &options) const {
  ++compiled;
  const auto ignore = [](const Stage &, int, mlir::ModuleOp) { return absl::OkStatus(); };
  return compileModel(request.model, options, ignore);
}

absl::StatusOr<TuneTrial> TuneTrials::measure(const CompileOptions &wanted) const {
  CompileOptions options = wanted;
  options.checks = false;
  const absl::StatusOr<proto::Plan> plan = compile(options);
  if (absl::IsInvalidArgument(plan.status()))
    return refusal(plan.status());
  FT_RETURN_IF_ERROR(plan.status());
  FT_ASSIGN_OR_RETURN(const Mesh mesh,
                      CompiledMesh(*plan, static_cast<int>(options.target.ranks_per_node())));
  const absl::StatusOr<TuneTrial> trial = trialOf(*plan, mesh, options.target, Packing::kExact);
  if (absl::IsInvalidArgument(trial.status()))
    return refusal(trial.status());
  return trial;
}

absl::StatusOr<TuneTrial> TuneTrials::exact(const TunePoint &point) {
  {
    std::lock_guard lock(mutex);
    auto found = exacts.find(point);
    if (found != exacts.end())
      return found->second;
  }
  FT_ASSIGN_OR_RETURN(TuneTrial trial, measure(optionsAt(space, point, request.base)));
  std::lock_guard lock(mutex);
  return exacts[point] = std::move(trial);
}

std::vector<size_t> TuneTrials::sameStrategy(size_t layout) const {
  std::vector<size_t> same;
  for (size_t i = 0; i < space.layouts.size(); ++i)
    if (space.layouts[i].strategy == space.layouts[layout].strategy)
      same.push_back(i);
  return same;
}

absl::StatusOr<std::vector<TuneTrial>> TuneTrials::estimateMeshes(const TunePoint &point) const {
  const std::vector<size_t> layouts = sameStrategy(point.layout);
  CompileOptions options = optionsAt(space, point, request.base);
  options.checks = false;
  std::vector<std::vector<Sample>> sizes(2);
  for (int64_t more : {0, 1}) {
    options.keptBlocks = kept + more;
    const absl::StatusOr<proto::Plan> plan = compile(options);
    if (absl::IsInvalidArgument(plan.status()))
      return std::vector<TuneTrial>(layouts.size(), refusal(plan.status()));
    FT_RETURN_IF_ERROR(plan.status());
    for (size_t layout : layouts) {
      const absl::StatusOr<TuneTrial> trial =
          trialOf(*plan, space.layouts[layout].mesh, options.target, Packing::kAbout);
      if (!trial.ok() && !absl::IsInvalidArgument(trial.status()))
        return trial.status();
      sizes[static_cast<size_t>(more)].push_back(
          {trial.ok() ? *trial : refusal(trial.status()),
           turnsOf(*plan, space.layouts[layout].mesh, options.target)});
    }
  }
  std::vector<TuneTrial> trials;
  for (const auto &[less, more] : llvm::zip_equal(sizes[0], sizes[1])) {
    const TuneTrial &refusable = less.trial.refused.empty() ? more.trial : less.trial;
    trials.push_back(refusable.refused.empty() ? extrapolated(less, more, kept, space.blocks) : refusable);
  }
  return trials;
}

absl::StatusOr<TuneTrial> TuneTrials::estimate(const TunePoint &point) {
  if (!leavesOutLayers() || isSettledWhole(optionsAt(space, point, request.base)))
    return exact(point);
  const std::vector<size_t> layouts = sameStrategy(point.layout);
  TunePoint first = point;
  first.layout = layouts.front();
  Estimate *estimate = nullptr;
  {
    std::lock_guard lock(mutex);
    estimate = &estimates[first];
  }
  std::lock_guard lock(estimate->making);
  if (!estimate->trials)
    estimate->trials = estimateMeshes(first);
  FT_RETURN_IF_ERROR(estimate->trials->status());
  return (**estimate->trials)[static_cast<size_t>(llvm::find(layouts, point.layout) - layouts.begin())];
}

} // namespace ft::compiler
