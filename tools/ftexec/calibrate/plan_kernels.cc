#include "tools/ftexec/calibrate/plan_kernels.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <numeric>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "runtime/base/status_macros.h"
#include "runtime/cost/kernel_key.h"
#include "runtime/executor/operand_resolver.h"
#include "runtime/executor/plan_walk.h"
#include "runtime/plan/all_to_all.h"
#include "runtime/plan/rank_share.h"
#include "runtime/plan/report.h"

namespace ft {
namespace {

constexpr int kSettling = 2, kFewest = 5, kMost = 101;  // walks
constexpr uint64_t kSeed = 1;
constexpr double kLeastSeconds = 1e-9;     // what clocks tell apart
constexpr size_t kRoomForLinks = 8 << 10;  // bytes of a target

// Programs of a training step, by how often they run in it; else those of evaluation.
std::vector<int> ProgramsOf(const proto::Plan& plan) {
  std::vector<int> training, evaluating;
  for (int p = 0; p < plan.programs_size(); ++p) {
    if (RunsInStep(plan, plan.programs(p)) > 0) training.push_back(p);
    if (plan.programs(p).name() == "eval_step") evaluating.push_back(p);
  }
  return training.empty() ? evaluating : training;
}

class Timing {
 public:
  Timing(const CalibrationSession& session, const proto::Plan& plan, PlanWalk& walk)
      : session_(session), plan_(plan), walk_(walk), programs_(ProgramsOf(plan)) {
    for (const int p : programs_) seconds_.emplace_back(plan.programs(p).instructions_size());
  }

  absl::Status Run(double seconds) {
    for (int p = 0; p < plan_.programs_size(); ++p)
      if (plan_.programs(p).name() == "init") FT_RETURN_IF_ERROR(walk_.Run(p));
    double own = 0;
    for (int i = 0; i < kSettling; ++i) {
      const absl::Time begin = absl::Now();
      FT_RETURN_IF_ERROR(WalkAll(false));
      own = absl::ToDoubleSeconds(absl::Now() - begin);
    }
    FT_ASSIGN_OR_RETURN(const auto all, session_.All({own}));
    for (const std::vector<double>& of_rank : all) own = std::max(own, of_rank[0]);
    const int walks = static_cast<int>(std::clamp<double>(seconds / own, kFewest, kMost));
    for (int i = 0; i < walks; ++i) FT_RETURN_IF_ERROR(WalkAll(true));
    return absl::OkStatus();
  }

  // Medians of what instructions took, over ranks the mean, and their spread; by key the mean over the
  // instructions that have it. Where others disturb, each kernel is seldom hit and its median does not show
  // it, but every walk is: all are as much longer as makes them take together what the median of walks took.
  absl::StatusOr<std::map<uint64_t, Target::TimedKernel>> ByKey(const Mesh& mesh) const {
    std::vector<double> medians, spreads;
    for (const auto& of_program : seconds_)
      for (const std::vector<double>& of_instruction : of_program) {
        const Sample sample = Summarize(of_instruction);
        medians.push_back(sample.seconds);
        spreads.push_back(sample.spread);
      }
    const double together = std::accumulate(medians.begin(), medians.end(), 0.0);
    const double longer = together > 0 ? Summarize(walks_).seconds / together : 1;
    for (double& median : medians) median = std::max(kLeastSeconds, median * longer);
    const RunsFunction runs = RanksThatRun(mesh);
    FT_RETURN_IF_ERROR(OverRanks(medians, runs));
    FT_RETURN_IF_ERROR(OverRanks(spreads, runs));
    std::map<uint64_t, Target::TimedKernel> by_key;
    std::map<uint64_t, int> counts;
    size_t at = 0;
    for (const int p : programs_)
      for (const proto::Instruction& instruction : plan_.programs(p).instructions()) {
        const size_t place = at++;
        if (instruction.opcode() != proto::KERNEL || ShareOfRank(plan_, mesh, instruction) == 0) continue;
        const uint64_t key = KernelKey(plan_, instruction);
        Target::TimedKernel& timed = by_key[key];
        const int count = ++counts[key];
        timed.set_key(key);
        timed.set_share(ShareOfRank(plan_, mesh, instruction));
        timed.set_seconds(timed.seconds() + (medians[place] - timed.seconds()) / count);
        timed.set_spread(timed.spread() + (spreads[place] - timed.spread()) / count);
      }
    return by_key;
  }

  // Of whole walks, over ranks the mean.
  absl::StatusOr<double> Spread() const {
    std::vector<double> spread = {Summarize(walks_).spread};
    FT_RETURN_IF_ERROR(OverRanks(spread, [](int, size_t) { return true; }));
    return spread[0];
  }

 private:
  absl::Status WalkAll(bool counts) {
    double whole = 0;
    for (size_t i = 0; i < programs_.size(); ++i) {
      FT_RETURN_IF_ERROR(session_.Barrier());
      FT_RETURN_IF_ERROR(walk_.Run(programs_[i]));
      if (!counts) continue;
      const std::vector<double>& taken = walk_.seconds(programs_[i]);
      for (size_t k = 0; k < taken.size(); ++k) {
        seconds_[i][k].push_back(taken[k]);
        whole += taken[k];
      }
    }
    if (counts) walks_.push_back(whole);
    return absl::OkStatus();
  }

  // Whether a rank runs what has a place among all instructions.
  using RunsFunction = std::function<bool(int rank, size_t place)>;

  RunsFunction RanksThatRun(const Mesh& mesh) const {
    std::vector<const proto::Instruction*> instructions;
    for (const int p : programs_)
      for (const proto::Instruction& instruction : plan_.programs(p).instructions())
        instructions.push_back(&instruction);
    return [this, mesh, instructions = std::move(instructions)](int rank, size_t place) {
      return instructions[place]->opcode() != proto::KERNEL ||
             RunsOn(plan_, mesh, mesh.ShardRank(rank), *instructions[place]);
    };
  }

  // The mean of those for which a value counts; 0 where there are none.
  absl::Status OverRanks(std::vector<double>& values, const RunsFunction& counts) const {
    FT_ASSIGN_OR_RETURN(const auto all, session_.All(values));
    for (size_t i = 0; i < values.size(); ++i) {
      double sum = 0;
      int ranks = 0;
      for (size_t r = 0; r < all.size(); ++r) {
        if (!counts(static_cast<int>(r), i)) continue;
        sum += all[r][i];
        ++ranks;
      }
      values[i] = ranks == 0 ? 0 : sum / ranks;
    }
    return absl::OkStatus();
  }

  const CalibrationSession& session_;
  const proto::Plan& plan_;
  PlanWalk& walk_;
  const std::vector<int> programs_;
  std::vector<std::vector<std::vector<double>>> seconds_;  // by program and instruction, of each walk
  std::vector<double> walks_;
};

// "matmul f32[4,8] f32[8,4] -> f32[4,4]"
std::map<uint64_t, std::string> TitlesOf(const proto::Plan& plan, const OperandResolver& operands) {
  std::map<uint64_t, std::string> titles;
  for (const int p : ProgramsOf(plan))
    for (const proto::Instruction& instruction : plan.programs(p).instructions())
      if (instruction.opcode() == proto::KERNEL)
        titles[KernelKey(plan, instruction)] =
            absl::StrCat(instruction.kernel(), " ", ShapesText(instruction, operands));
  return titles;
}

}  // namespace

bool TakeTimedLayout(const Target::Measured& now, Target& target) {
  const bool alike = !target.has_measured() || TimedLayoutText(target.measured()) == LayoutText(now);
  Target::Measured& measured = *target.mutable_measured();
  measured.clear_timed_ranks_on_node();
  measured.clear_timed_threads();
  measured.clear_timed_instruction_set();
  if (measured.dtypes().empty()) {  // kernels are all that was
    measured.set_ranks_on_node(now.ranks_on_node());
    measured.set_threads(now.threads());
    measured.set_instruction_set(now.instruction_set());
  } else if (LayoutText(measured) != LayoutText(now)) {
    measured.set_timed_ranks_on_node(now.ranks_on_node());
    measured.set_timed_threads(now.threads());
    measured.set_timed_instruction_set(now.instruction_set());
  }
  return alike;
}

int TakeTimedKernels(std::vector<Target::TimedKernel> own, std::vector<Target::TimedKernel> others,
                     Target& target) {
  target.clear_timed_kernels();
  size_t bytes = target.ByteSizeLong() + kRoomForLinks;
  std::map<uint64_t, Target::TimedKernel> taken;
  int without_room = 0;
  for (std::vector<Target::TimedKernel>* some : {&own, &others}) {
    std::stable_sort(some->begin(), some->end(),
                     [](const auto& a, const auto& b) { return a.seconds() > b.seconds(); });
    for (const Target::TimedKernel& kernel : *some) {
      if (taken.contains(kernel.key())) continue;
      const size_t more = kernel.ByteSizeLong() + 3;  // its tag and its length
      if (bytes + more > kMostTargetBytes) {
        ++without_room;
        continue;
      }
      bytes += more;
      taken.emplace(kernel.key(), kernel);
    }
  }
  for (const auto& [key, kernel] : taken) *target.add_timed_kernels() = kernel;
  return without_room;
}

absl::StatusOr<PlanKernels> TimePlanKernels(const CalibrationSession& session, const proto::Plan& plan,
                                            const BoundPlan& bound, double seconds) {
  const int rank = session.job().rank() % bound.mesh.world_size();
  FT_ASSIGN_OR_RETURN(const std::unique_ptr<PlanWalk> walk,
                      PlanWalk::Create(plan, bound, session.device(), rank));
  FT_RETURN_IF_ERROR(walk->FillInputs(kSeed));
  Timing timing(session, plan, *walk);
  FT_RETURN_IF_ERROR(timing.Run(seconds));
  FT_ASSIGN_OR_RETURN(const auto by_key, timing.ByKey(bound.mesh));
  PlanKernels kernels{.target = plan.target(), .titles = TitlesOf(plan, walk->operands())};
  FT_ASSIGN_OR_RETURN(const double spread, timing.Spread());
  Target::Measured now;
  now.set_ranks_on_node(static_cast<uint32_t>(session.ranks_on_node()));
  now.set_threads(static_cast<uint32_t>(session.job().threads));
  now.set_instruction_set(std::string(session.rank_device().instruction_set()));
  const bool alike = TakeTimedLayout(now, kernels.target);
  kernels.target.mutable_measured()->set_kernels(spread);
  std::vector<Target::TimedKernel> own, others;
  for (const auto& [key, timed] : by_key) own.push_back(timed);
  for (const Target::TimedKernel& known : plan.target().timed_kernels())
    if (!by_key.contains(known.key())) others.push_back(known);
  if (!alike) {
    kernels.left_out = static_cast<int>(others.size());
    others.clear();
  }
  kernels.without_room = TakeTimedKernels(std::move(own), std::move(others), kernels.target);
  return kernels;
}

}  // namespace ft
