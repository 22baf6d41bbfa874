#include "tools/ftc/against/comparison.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include "fmt/format.h"
#include "runtime/base/printable.h"
#include "runtime/base/status_macros.h"
#include "runtime/cost/instruction_kind.h"
#include "runtime/cost/simulate.h"
#include "runtime/plan/all_to_all.h"
#include "runtime/plan/plan_file.h"
#include "runtime/plan/report.h"
#include "runtime/plan/verify_transfers.h"
#include "runtime/targets/shipped_targets.h"
#include "tools/ftc/median.h"

namespace ftc {
namespace {

constexpr size_t kWorst = 10;
constexpr int64_t kWarmUp = 5;  // steps, where a trace has more
// Seconds of the host for a launch and the record of its event: what each instruction of a traced step of a
// GPU takes at least, which replays no recorded graph. A guess: a launch alone is known to take some
// microseconds.
constexpr double kEnqueuedLaunch = 5e-6;

using Place = std::pair<int, int>;          // program, instruction
using Samples = std::map<int64_t, double>;  // by step and micro-step

Against Over(double predicted, const std::vector<double>& ranks) {
  return {predicted, Median(ranks), ranks.empty() ? 0 : *std::max_element(ranks.begin(), ranks.end())};
}

// Of one rank.
struct Measured {
  std::map<Place, Samples> instructions;
  std::map<int64_t, double> waited, computed;           // by step
  std::map<int64_t, std::pair<double, double>> extent;  // of a step
};

class Comparing {
 public:
  Comparing(const std::string& path, const Explained& explained, const MeasuredTrace& trace)
      : path_(path), explained_(explained), trace_(trace), target_(explained.target), step_(explained.step) {
    for (int p = 0; p < explained.plan.programs_size(); ++p) programs_[explained.plan.programs(p).name()] = p;
  }

  absl::StatusOr<Comparison> Run() {
    ChooseSteps();
    ExpectLaunches();
    for (const MeasuredEvent& event : trace_.events) FT_RETURN_IF_ERROR(Take(event));
    result_.ranks = static_cast<int>(ranks_.size());
    CompareSteps();
    CompareInstructions();
    return std::move(result_);
  }

 private:
  void ChooseSteps() {
    std::set<int64_t> steps;
    for (const MeasuredEvent& event : trace_.events) steps.insert(event.step);
    const auto count = static_cast<int64_t>(steps.size());
    // Nothing runs in on a machine that is simulated.
    const int64_t left_out = trace_.run.device == "null" ? 0 : count > kWarmUp ? kWarmUp : count > 1 ? 1 : 0;
    result_.left_out = left_out;
    result_.steps = count - left_out;
    result_.first_step = *std::next(steps.begin(), left_out);
  }

  void ExpectLaunches() {
    result_.untraced.predicted = step_.seconds;
    if (trace_.run.device != "cuda" || target_.stack().launch_s() > 0) return;
    target_.mutable_stack()->set_launch_s(kEnqueuedLaunch);
    step_ = ft::SimulateStep(explained_.plan, explained_.bound, target_);
    result_.launch_s = step_.seconds != result_.untraced.predicted ? kEnqueuedLaunch : 0;
  }

  absl::Status Take(const MeasuredEvent& event) {
    const auto program = programs_.find(event.program);
    if (program == programs_.end() || event.instruction < 0 ||
        event.instruction >= explained_.plan.programs(program->second).instructions_size())
      return absl::InvalidArgumentError(
          fmt::format("{}: the trace has instruction {} of program {}, the plan has none", ft::OneLine(path_),
                      event.instruction, ft::Quote(event.program)));
    if (ft::RunsInStep(explained_.plan, explained_.plan.programs(program->second)) == 0)
      return absl::InvalidArgumentError(
          fmt::format("{}: the trace has instructions of program {}, which does not run in a step",
                      ft::OneLine(path_), ft::Quote(event.program)));
    if (event.step < result_.first_step) return absl::OkStatus();
    Measured& rank = ranks_[event.rank];
    const double seconds = event.seconds, end = event.begin + seconds;
    auto [extent, is_new] = rank.extent.try_emplace(event.step, event.begin, end);
    extent->second = {std::min(extent->second.first, event.begin), std::max(extent->second.second, end)};
    if (event.computes) (event.is_wait ? rank.waited : rank.computed)[event.step] += seconds;
    if (event.is_wait) return absl::OkStatus();
    const Place place{program->second, static_cast<int>(event.instruction)};
    // An instruction may be several commands.
    rank.instructions[place][event.step * kMicroSteps + event.micro_step] += seconds;
    return absl::OkStatus();
  }

  template <typename Of>
  std::vector<double> OfRanks(Of of) const {
    std::vector<double> values;
    for (const auto& [rank, measured] : ranks_) values.push_back(of(measured));
    return values;
  }

  // A step in which it does not occur counts as 0.
  double MedianOfSteps(const Measured& rank, const std::map<int64_t, double>& by_step) const {
    std::vector<double> values;
    for (const auto& [step, extent] : rank.extent) {
      const auto found = by_step.find(step);
      values.push_back(found == by_step.end() ? 0 : found->second);
    }
    return Median(values);
  }

  void CompareSteps() {
    result_.step = Over(step_.seconds, OfRanks([](const Measured& rank) {
                          std::vector<double> values;
                          for (const auto& [step, extent] : rank.extent)
                            values.push_back(extent.second - extent.first);
                          return Median(values);
                        }));
    result_.untraced.median = trace_.run.step_ms * 1e-3;
    result_.exposed = Over(step_.exposed_seconds,
                           OfRanks([&](const Measured& rank) { return MedianOfSteps(rank, rank.waited); }));
    result_.computing =
        Over(step_.compute_seconds,
             OfRanks([&](const Measured& rank) { return MedianOfSteps(rank, rank.computed); }));
  }

  void CompareInstructions() {
    std::map<std::string, std::vector<double>> of_class;  // by rank
    std::map<std::string, ClassAgainst> classes;
    for (int p = 0; p < explained_.plan.programs_size(); ++p) {
      const ft::proto::Program& program = explained_.plan.programs(p);
      const auto runs = static_cast<int64_t>(ft::RunsInStep(explained_.plan, program));
      if (runs == 0) continue;
      simulated_ = ft::SimulateProgram(explained_.plan, explained_.bound, p, target_);
      for (int i = 0; i < program.instructions_size(); ++i) CompareOne(p, i, runs, of_class, classes);
    }
    for (auto& [name, all] : classes) {
      all.name = name;
      all.seconds = Over(all.seconds.predicted, of_class[name]);
      result_.classes.push_back(all);
    }
    std::sort(result_.classes.begin(), result_.classes.end(),
              [](const ClassAgainst& a, const ClassAgainst& b) {
                return std::max(a.seconds.predicted, a.seconds.median) >
                       std::max(b.seconds.predicted, b.seconds.median);
              });
    result_.worst = result_.instructions;
    const auto off = [](const InstructionAgainst& one) {
      return std::abs(one.seconds.median - one.seconds.predicted);
    };
    std::stable_sort(result_.worst.begin(), result_.worst.end(),
                     [&](const auto& a, const auto& b) { return off(a) > off(b); });
    if (result_.worst.size() > kWorst) result_.worst.resize(kWorst);
  }

  void CompareOne(int p, int i, int64_t runs, std::map<std::string, std::vector<double>>& of_class,
                  std::map<std::string, ClassAgainst>& classes) {
    const ft::proto::Instruction& instruction = explained_.plan.programs(p).instructions(i);
    const ft::SimulatedInstruction& times = simulated_.instructions[static_cast<size_t>(i)];
    const double predicted = static_cast<double>(runs) * (times.end - times.begin);
    std::vector<double> ranks, running;
    for (const auto& [rank, measured] : ranks_) {
      if (!RunsOn(rank, instruction)) {
        ranks.push_back(0);
        continue;
      }
      const auto found = measured.instructions.find({p, i});
      if (found == measured.instructions.end()) continue;
      std::vector<double> values;
      for (const auto& [when, seconds] : found->second) values.push_back(seconds);
      ranks.push_back(Median(values) * static_cast<double>(runs));
      running.push_back(ranks.back());
    }
    if (ranks.size() < ranks_.size()) {
      result_.unmeasured += predicted > 0 ? runs : 0;
      return;
    }
    if (running.empty()) return;  // on this mesh nobody has what it works on
    const std::string name = ft::KindOf(instruction);
    ClassAgainst& all = classes[name];
    all.runs += runs;
    all.seconds.predicted += predicted;
    std::vector<double>& sums = of_class[name];
    sums.resize(ranks.size());
    for (size_t r = 0; r < ranks.size(); ++r) sums[r] += ranks[r];
    result_.instructions.push_back({p, i, runs, Over(predicted, running)});
  }

  bool RunsOn(int rank, const ft::proto::Instruction& instruction) const {
    const ft::Mesh mesh{.replica = trace_.run.replica, .shard = trace_.run.shard};
    return instruction.opcode() != ft::proto::KERNEL ||
           ft::RunsOn(explained_.plan, mesh, mesh.ShardRank(rank), instruction);
  }

  static constexpr int64_t kMicroSteps = int64_t{1} << 21;

  const std::string& path_;
  const Explained& explained_;
  const MeasuredTrace& trace_;
  ft::Target target_;  // that traced steps are predicted for
  ft::SimulatedProgram step_;
  std::map<std::string, int> programs_;
  std::map<int, Measured> ranks_;
  ft::SimulatedProgram simulated_;  // the program that is compared
  Comparison result_;
};

// A shipped machine may have two names.
bool IsNamed(const ft::Target& target, const std::string& name) {
  const ft::Target* shipped = ft::FindTarget(name);
  if (name == target.name() || shipped == nullptr) return name == target.name();
  ft::Target renamed = *shipped;
  renamed.set_name(target.name());
  return renamed.SerializeAsString() == target.SerializeAsString();
}

}  // namespace

absl::Status CheckTrace(const std::string& path, const ft::TraceRun& run, const Explained& explained,
                        uint64_t hash) {
  if (const std::string own = ft::PlanHashText(hash); run.plan != own)
    return absl::InvalidArgumentError(fmt::format("'{}' is a trace of plan {}, '{}' is plan {}",
                                                  ft::OneLine(path), ft::OneLine(run.plan, 64),
                                                  ft::OneLine(explained.name), own));
  if (run.device != "null" && explained.target.cuda() != (run.device == "cuda"))
    return absl::InvalidArgumentError(
        fmt::format("'{}' is a trace of {}, but {} is not: give a --target that is", ft::OneLine(path),
                    run.device == "cuda" ? "GPUs" : "CPU ranks", explained.target.name()));
  if (run.device == "null" && run.target.empty())
    return absl::InvalidArgumentError(
        fmt::format("'{}' does not say which machine was simulated: trace the run again", ft::OneLine(path)));
  if (run.device == "null" && !IsNamed(explained.target, run.target))
    return absl::InvalidArgumentError(
        fmt::format("'{}' is a trace of a simulated {}, not of {}: give a --target that is",
                    ft::OneLine(path), ft::OneLine(run.target), explained.target.name()));
  return absl::OkStatus();
}

absl::StatusOr<Comparison> Compare(const std::string& path, const Explained& explained,
                                   const MeasuredTrace& trace) {
  return Comparing(path, explained, trace).Run();
}

}  // namespace ftc
