#include "tools/ftc/report/run_trace.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "absl/strings/ascii.h"
#include "fmt/format.h"
#include "runtime/base/printable.h"
#include "runtime/base/status_macros.h"
#include "runtime/plan/mesh.h"
#include "runtime/plan/plan_file.h"
#include "tools/ftc/against/trace_file.h"
#include "tools/ftc/median.h"
#include "tools/ftc/report/plan_columns.h"
#include "tools/ftc/report/run_metrics.h"

namespace ftc {
namespace {

// As its file has it.
std::string HashOf(const ft::proto::Plan& plan) {
  ft::proto::Plan in_file = plan;
  in_file.set_version(ft::kPlanVersion);
  return ft::PlanHashText(ft::PlanHash(in_file.SerializeAsString()));
}

// Steps of a rank in which the first is not like the others.
double SteadyMedian(const std::map<int64_t, double>& by_step, int64_t steps) {
  std::vector<double> values;
  for (const auto& [step, seconds] : by_step) {
    if (step > 0 || steps == 1) values.push_back(seconds);
  }
  return values.empty() ? 0 : Median(std::move(values));
}

class Reader {
 public:
  Reader(const std::string& path, const Explained& explained) : path_(path), explained_(explained) {
    trace_.file = FileName(path);
    for (int p = 0; p < explained.plan.programs_size(); ++p) programs_[explained.plan.programs(p).name()] = p;
  }

  absl::StatusOr<RunTrace> Read(const MeasuredTrace& measured) {
    FT_RETURN_IF_ERROR(CheckRun(measured.run));
    for (const MeasuredEvent& event : measured.events) step_numbers_.try_emplace(event.step, 0);
    for (auto& [step, number] : step_numbers_) number = steps_++;
    first_rank_ = measured.events.front().rank;
    for (const MeasuredEvent& event : measured.events) first_rank_ = std::min(first_rank_, event.rank);
    for (const MeasuredEvent& event : measured.events) FT_RETURN_IF_ERROR(Record(event));
    trace_.ranks = measured.ranks;
    Summarise();
    return std::move(trace_);
  }

 private:
  absl::Status CheckRun(const ft::TraceRun& run) const {
    const std::string own = HashOf(explained_.plan);
    if (run.plan != own)
      return absl::InvalidArgumentError(
          fmt::format("{}: trace of another plan: {}, this one is {}", ft::OneLine(path_), run.plan, own));
    const ft::Mesh mesh{.replica = run.replica, .shard = run.shard};
    if (mesh == explained_.bound.mesh) return absl::OkStatus();
    return absl::InvalidArgumentError(fmt::format("{}: trace of ranks on a mesh of {}, the report is for {}",
                                                  ft::OneLine(path_), ft::MeshText(mesh),
                                                  ft::MeshText(explained_.bound.mesh)));
  }

  absl::Status Record(const MeasuredEvent& event) {
    const auto found = programs_.find(event.program);
    const int size =
        found == programs_.end() ? 0 : explained_.plan.programs(found->second).instructions_size();
    if (event.instruction < 0 || event.instruction >= size)
      return absl::InvalidArgumentError(
          fmt::format("{}: trace of another plan: it has instruction {} of '{}'", ft::OneLine(path_),
                      event.instruction, event.program));
    const int program = found->second, instruction = static_cast<int>(event.instruction);
    const int64_t step = step_numbers_[event.step];
    if (!event.is_wait) {
      // A program may run several times in a step: the mean of them.
      const auto runs =
          static_cast<double>(ft::RunsInStep(explained_.plan, explained_.plan.programs(program)));
      times_[{program, instruction}][event.rank][step] += event.seconds / runs;
    } else if (event.computes) {
      waited_[event.rank][step] += event.seconds;
    }
    if (event.rank != first_rank_ || step != (steps_ > 1 ? 1 : 0)) return absl::OkStatus();
    // What an earlier run of the program in this step did is forgotten.
    auto& [run, events] = events_[program];
    if (event.micro_step < run) return absl::OkStatus();
    if (std::exchange(run, event.micro_step) != event.micro_step) events.clear();
    events.push_back({.program = program,
                      .instruction = instruction,
                      .wait = event.is_wait,
                      .begin = event.begin,
                      .end = event.begin + event.seconds});
    return absl::OkStatus();
  }

  void LastRuns() {
    for (const auto& [program, run] : events_) {
      double began = INFINITY;
      for (const RunTrace::Event& event : run.second) began = std::min(began, event.begin);
      for (RunTrace::Event event : run.second) {
        event.begin -= began;
        event.end -= began;
        trace_.events.push_back(event);
      }
    }
  }

  void Summarise() {
    trace_.steps = steps_;
    for (const auto& [key, by_rank] : times_) {
      std::vector<double> medians;
      for (const auto& [rank, by_step] : by_rank) medians.push_back(SteadyMedian(by_step, steps_));
      trace_.measured.push_back({.program = key.first,
                                 .instruction = key.second,
                                 .median = Median(medians),
                                 .slowest = *std::max_element(medians.begin(), medians.end())});
    }
    std::vector<double> waits;
    for (const auto& [rank, by_step] : waited_) waits.push_back(SteadyMedian(by_step, steps_));
    if (!waits.empty()) {
      trace_.waited_median = Median(waits);
      trace_.waited_slowest = *std::max_element(waits.begin(), waits.end());
    }
    LastRuns();
    Classes();
  }

  void Classes() {
    std::map<std::pair<std::string, std::string>, RunTrace::Class> classes;
    const ft::proto::Plan& plan = explained_.plan;
    int simulated = -1;
    ft::SimulatedProgram run;
    for (const RunTrace::Measured& one : trace_.measured) {
      if (std::exchange(simulated, one.program) != one.program)
        run = ft::SimulateProgram(plan, explained_.bound, one.program, explained_.target);
      const ft::proto::Instruction& instruction = plan.programs(one.program).instructions(one.instruction);
      // "all_gather" of any unit
      const std::string title = instruction.opcode() == ft::proto::KERNEL
                                    ? instruction.kernel()
                                    : absl::AsciiStrToLower(ft::proto::Opcode_Name(instruction.opcode()));
      const std::string stream = StreamKey(instruction.stream());
      RunTrace::Class& of =
          classes.try_emplace({stream, title}, RunTrace::Class{.title = title, .stream = stream})
              .first->second;
      const uint64_t runs = ft::RunsInStep(plan, plan.programs(one.program));
      const ft::SimulatedInstruction& times = run.instructions[static_cast<size_t>(one.instruction)];
      of.count += runs;
      of.predicted += static_cast<double>(runs) * (times.end - times.begin);
      of.measured += static_cast<double>(runs) * one.median;
    }
    for (auto& [key, one] : classes) trace_.classes.push_back(std::move(one));
    const auto difference = [](const RunTrace::Class& one) { return std::abs(one.measured - one.predicted); };
    std::stable_sort(trace_.classes.begin(), trace_.classes.end(),
                     [&](const auto& a, const auto& b) { return difference(a) > difference(b); });
  }

  const std::string& path_;
  const Explained& explained_;
  std::map<std::string, int> programs_;
  std::map<int64_t, int64_t> step_numbers_;  // from 0, by step of the run
  int64_t steps_ = 0;
  int first_rank_ = 0;
  // By program and instruction, rank, step.
  std::map<std::pair<int, int>, std::map<int64_t, std::map<int64_t, double>>> times_;
  std::map<int64_t, std::map<int64_t, double>> waited_;  // by rank, step
  // Of the first rank in one step, by program: the last micro-step, and what it did.
  std::map<int, std::pair<int64_t, std::vector<RunTrace::Event>>> events_;
  RunTrace trace_;
};

}  // namespace

absl::StatusOr<RunTrace> ReadRunTrace(const std::string& path, const Explained& explained) {
  FT_ASSIGN_OR_RETURN(const MeasuredTrace measured, ReadTrace(path));
  return Reader(path, explained).Read(measured);
}

}  // namespace ftc
