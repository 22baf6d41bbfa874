#include "tools/ftc/step_cost.h"

#include <algorithm>

#include "fmt/format.h"
#include "runtime/base/numbers.h"
#include "runtime/cost/uncertainty.h"
#include "runtime/plan/bind.h"
#include "runtime/plan/mesh.h"

namespace ftc {
namespace {

// What does not fit: the arena alone, or only with what lies beside it.
std::string WithWhatLiesBeside(uint64_t beside) {
  return beside == 0
             ? ""
             : fmt::format(", and {} beside it (context, libraries, communicators)", ft::ShortBytes(beside));
}

}  // namespace

Fit FitOf(const ft::Target& target, uint64_t arena_bytes, uint64_t beside_bytes) {
  const uint64_t bytes = arena_bytes + beside_bytes;
  if (target.memory_bytes() == 0) return Fit::kUnknown;
  if (bytes > target.memory_bytes()) return Fit::kNo;
  const double part = static_cast<double>(bytes) / static_cast<double>(target.memory_bytes());
  return part > kTight ? Fit::kTight : Fit::kYes;
}

const char* Name(Fit fit) {
  switch (fit) {
    case Fit::kUnknown:
      break;
    case Fit::kYes:
      return "yes";
    case Fit::kTight:
      return "tight";
    case Fit::kNo:
      return "no";
  }
  return "-";
}

StepCost StepCostOf(const ft::proto::Plan& plan, const ft::BoundPlan& bound, const ft::SimulatedProgram& step,
                    const ft::Target& target) {
  StepCost cost{.seconds = step.seconds, .exposed_seconds = step.exposed_seconds};
  if (target.has_measured()) {
    const double half = ft::UncertaintyOf(ft::SourcesOf(plan, bound, target, step), target.measured());
    cost.seconds_low = step.seconds * (1 - half);
    cost.seconds_high = step.seconds * (1 + half);
  }
  const auto micro_steps = static_cast<double>(std::max(1u, plan.micro_steps()));
  const double peak = ft::RateOf(target, ft::MainType(plan)).peak();
  if (step.seconds > 0) {
    cost.tokens_per_s =
        static_cast<double>(plan.batch()) * static_cast<double>(plan.seq_len()) * micro_steps / step.seconds;
    if (peak > 0) cost.mfu = static_cast<double>(ft::ModelFlops(plan)) / (step.seconds * peak);
  }
  cost.beside = ft::BesideArenaOf(target, plan, bound.mesh, bound.device_class);
  cost.fit = FitOf(target, bound.arena_bytes(), cost.beside.total());
  return cost;
}

std::string MemoryRemark(const ft::proto::Plan& plan) {
  const ft::Target& target = plan.target();
  if (target.memory_bytes() == 0) return "";
  const absl::StatusOr<ft::Mesh> mesh = ft::CompiledMesh(plan, static_cast<int>(target.ranks_per_node()));
  if (!mesh.ok())
    return fmt::format("whether it fits the memory of {} is not known: {}", target.name(),
                       std::string(mesh.status().message()));
  const absl::StatusOr<ft::BoundPlan> bound = ft::BindPlan(plan, *mesh, ft::DeviceOf(target));
  if (!bound.ok())
    return fmt::format("whether it fits the memory of {} is not known: {}", target.name(),
                       std::string(bound.status().message()));
  const uint64_t arena = bound->arena_bytes();
  const std::string ranks = fmt::format("{} rank{} (replica {} x shard {})", mesh->world_size(),
                                        mesh->world_size() == 1 ? "" : "s", mesh->replica, mesh->shard);
  const uint64_t all_beside = ft::BesideArenaOf(target, plan, *mesh, bound->device_class).total();
  // An arena that is too large alone needs no more words.
  const std::string beside = arena > target.memory_bytes() ? "" : WithWhatLiesBeside(all_beside);
  switch (FitOf(target, arena, all_beside)) {
    case Fit::kNo:
      return fmt::format(
          "the arena of a rank has {} with {}{}, more than the {} of {}: more ranks (--world-size), a "
          "strategy that shards more, --remat or --offload need less",
          ft::ShortBytes(arena), ranks, beside, ft::ShortBytes(target.memory_bytes()), target.name());
    case Fit::kTight:
      return fmt::format(
          "the arena of a rank has {} with {}{}, nearly all of the {} of {}: little is left for {}",
          ft::ShortBytes(arena), ranks, beside, ft::ShortBytes(target.memory_bytes()), target.name(),
          all_beside > 0 ? "the driver, and for more than is announced"
                         : "context, libraries and communicators");
    default:
      return "";
  }
}

}  // namespace ftc
