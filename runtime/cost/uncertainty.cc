#include "runtime/cost/uncertainty.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "runtime/cost/instruction_cost.h"
#include "runtime/cost/kernel_key.h"
#include "runtime/cost/transfers.h"
#include "runtime/plan/node_layout.h"
#include "runtime/plan/report.h"
#include "runtime/plan/verify_transfers.h"

namespace ft {
namespace {

bool IsAttention(const proto::Instruction& kernel) { return absl::StrContains(kernel.kernel(), "attention"); }

// Attention that leaves out what lies in other documents, or behind a sequence: lengths and segments are its
// third and second operand from the end.
bool DependsOnDocuments(const proto::Instruction& kernel) {
  const int count = kernel.in_size();
  return IsAttention(kernel) && count > 3 &&
         (kernel.in(count - 3).buffer_plus_one() != 0 || kernel.in(count - 2).buffer_plus_one() != 0);
}

bool DependsOnRoutes(const proto::Instruction& kernel) { return kernel.kernel().starts_with("grouped_dot"); }

bool AnyKernel(const proto::Plan& plan, bool (*is)(const proto::Instruction&)) {
  for (const proto::Program& program : plan.programs())
    if (std::any_of(program.instructions().begin(), program.instructions().end(), is)) return true;
  return false;
}

// Of a machine that was measured a plan's kernels, and collectives, may be all that was: ftexec plan.bin
// --calibrate, with a plan that was compiled for figures of a data sheet.
bool OnlyKernels(const Target::Measured& measured) { return measured.dtypes().empty(); }

// Whether a collective among several ranks has the time of links, its group not being measured.
bool IsByLinks(const Mesh& mesh, const Target& target, const proto::Instruction& instruction) {
  if (!IsCollective(instruction.opcode())) return false;
  const NodeLayout layout =
      LayoutOnNodes(mesh, instruction.axis(), static_cast<int>(target.ranks_per_node()));
  return layout.ranks > 1 && FindMeasured(target, instruction.opcode(), layout) == nullptr;
}

bool AnyByLinks(const proto::Plan& plan, const Mesh& mesh, const Target& target) {
  for (const proto::Program& program : plan.programs()) {
    if (RunsInStep(plan, program) == 0) continue;
    for (const proto::Instruction& instruction : program.instructions())
      if (IsByLinks(mesh, target, instruction)) return true;
  }
  return false;
}

bool AnyTimed(const proto::Plan& plan, const Target& target) {
  for (const proto::Program& program : plan.programs())
    for (const proto::Instruction& instruction : program.instructions())
      if (instruction.opcode() == proto::KERNEL && FindTimed(target, plan, instruction) != nullptr)
        return true;
  return false;
}

// Whether a product of a step is reckoned by a rate of `dtype`.
bool AnyProductIn(proto::DType dtype, const proto::Plan& plan, const Target& target) {
  for (const proto::Program& program : plan.programs()) {
    if (RunsInStep(plan, program) == 0) continue;
    for (const proto::Instruction& instruction : program.instructions())
      if (instruction.opcode() == proto::KERNEL && IsProduct(instruction) &&
          KernelType(instruction) == dtype && FindTimed(target, plan, instruction) == nullptr)
        return true;
  }
  return false;
}

bool IsMeasured(proto::DType dtype, const Target& target) {
  const auto& measured = target.measured().dtypes();
  return std::find(measured.begin(), measured.end(), static_cast<int>(dtype)) != measured.end();
}

// Of products in another type than those that were measured, where they are most of what a plan computes.
std::string OtherType(const proto::Plan& plan, const Target& target) {
  const auto& measured = target.measured().dtypes();
  const proto::DType main = MainType(plan);
  if (OnlyKernels(target.measured()) || IsMeasured(main, target) || !AnyProductIn(main, plan, target))
    return "";
  return absl::StrCat(
      "an estimate: products were measured in ",
      absl::StrJoin(measured, " and ",
                    [](std::string* out, int one) { out->append(RateName(static_cast<proto::DType>(one))); }),
      ", and here are in ", RateName(main), ", at the rate that ", target.name(), " states");
}

double& SourceOf(const proto::Plan& plan, const Target& target, const proto::Instruction& kernel,
                 StepSources& sources) {
  if (FindTimed(target, plan, kernel) != nullptr) return sources.timed;
  if (IsAttention(kernel)) return sources.attention;
  return IsProduct(kernel) ? sources.products : sources.memory;
}

}  // namespace

StepSources SourcesOf(const proto::Plan& plan, const BoundPlan& bound, const Target& target,
                      const SimulatedProgram& step) {
  StepSources sources;
  double collectives = 0, copies = 0, by_links = 0;  // all of them, hidden ones too
  for (const proto::Program& program : plan.programs()) {
    const auto runs = static_cast<double>(RunsInStep(plan, program));
    if (runs == 0) continue;
    for (const proto::Instruction& instruction : program.instructions()) {
      const double seconds = runs * InstructionSeconds(plan, bound.mesh, instruction, target);
      if (instruction.opcode() == proto::KERNEL) {
        if (instruction.stream() != proto::COMPUTE) continue;
        double& source = SourceOf(plan, target, instruction, sources);
        source += seconds;
        if (&source == &sources.products && !IsMeasured(KernelType(instruction), target))
          sources.stated += seconds;
      } else {
        (instruction.opcode() == proto::COPY ? copies : collectives) += seconds;
        if (IsByLinks(bound.mesh, target, instruction)) by_links += seconds;
      }
    }
  }
  if (collectives + copies > 0) {
    sources.collectives = step.exposed_seconds * collectives / (collectives + copies);
    sources.copies = step.exposed_seconds - sources.collectives;
    sources.by_links = step.exposed_seconds * by_links / (collectives + copies);
  }
  return sources;
}

double UncertaintyOf(const StepSources& sources, const Target::Measured& measured) {
  if (!(sources.total() > 0)) return 0;
  const auto share = [&](double seconds) { return seconds / sources.total(); };
  const bool nominal = OnlyKernels(measured);
  const double by_links = sources.by_links + (nominal ? sources.copies : 0);
  const double by_data_sheet = nominal ? sources.reckoned() : sources.stated;
  const double model = share(sources.timed) * kTimedError +
                       share(sources.reckoned() - by_data_sheet) * kFormError +
                       share(by_data_sheet) * kNominalError +
                       share(sources.exposed() - by_links) * kExposedError + share(by_links) * kNominalError;
  double squares = model * model + measured.drift() * measured.drift();
  const std::pair<double, double> spreads[] = {
      {sources.timed, measured.kernels()},           {sources.products, measured.products()},
      {sources.attention, measured.attention()},     {sources.memory, measured.memory()},
      {sources.collectives, measured.collectives()}, {sources.copies, measured.copies()}};
  for (const auto& [seconds, spread] : spreads) squares += std::pow(share(seconds) * spread, 2);
  return std::min(kMostUncertain, std::sqrt(squares));
}

std::vector<std::string> AssumptionsOf(const proto::Plan& plan, const BoundPlan& bound,
                                       const Target& target) {
  std::vector<std::string> assumptions;
  const Target::Measured& measured = target.measured();
  const auto world = static_cast<uint32_t>(bound.mesh.world_size());
  const uint32_t on_node = std::min(world, target.ranks_per_node());
  // Ranks on processors share the memory of their host; each GPU has its own.
  if (target.has_measured() && !target.cuda() && measured.ranks_on_node() != on_node)
    assumptions.push_back(absl::StrCat("an estimate: measured with ", LayoutText(measured), ", and here are ",
                                       on_node, " on a host"));
  if (!target.cuda() && measured.timed_ranks_on_node() != 0 && AnyTimed(plan, target))
    assumptions.push_back(absl::StrCat("an estimate: kernels were timed with ", TimedLayoutText(measured),
                                       ", all else was measured with ", LayoutText(measured)));
  if (const std::string other = target.has_measured() ? OtherType(plan, target) : ""; !other.empty())
    assumptions.push_back(other);
  if (target.has_measured() && OnlyKernels(measured))
    assumptions.push_back(absl::StrCat("an estimate: of ", target.name(), " no more than kernels",
                                       target.collectives().empty() ? "" : " and collectives",
                                       " was measured, all else is what it states"));
  if (target.has_measured() && AnyByLinks(plan, bound.mesh, target))
    assumptions.push_back(
        "an estimate: collectives among these ranks were not measured, links that the target states say "
        "what they take");
  if (AnyKernel(plan, DependsOnDocuments))
    assumptions.push_back(
        "attention is reckoned for sequences of one document at full length; it takes less time "
        "where several are packed into one, or end early");
  if (AnyKernel(plan, DependsOnRoutes))
    assumptions.push_back(
        "experts are reckoned with equally many tokens each; it takes longer where routes are uneven");
  return assumptions;
}

}  // namespace ft
