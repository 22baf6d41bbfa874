#include "tools/ftc/report/run_trace.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>
#include <utility>

#include "fmt/format.h"
#include "runtime/base/printable.h"
#include "runtime/base/status_macros.h"
#include "runtime/plan/mesh.h"
#include "runtime/plan/plan_file.h"
#include "tools/ftc/against/trace_file.h"
#include "tools/ftc/report/run_metrics.h"

namespace ftc {
namespace {

// As its file has it.
uint64_t HashOf(const ft::proto::Plan& plan) {
  ft::proto::Plan in_file = plan;
  in_file.set_version(ft::kPlanVersion);
  return ft::PlanHash(in_file.SerializeAsString());
}

absl::Status CheckMesh(const std::string& path, const ft::TraceRun& run, const ft::Mesh& own) {
  const ft::Mesh mesh{.replica = run.replica, .shard = run.shard};
  if (mesh == own) return absl::OkStatus();
  return absl::InvalidArgumentError(fmt::format("{}: trace of ranks on a mesh of {}, the report is for {}",
                                                ft::OneLine(path), ft::MeshText(mesh), ft::MeshText(own)));
}

// Of instructions that the plan has: Compare has looked.
std::vector<RunTrace::Event> EventsOf(const MeasuredTrace& measured, const ft::proto::Plan& plan,
                                      int64_t step) {
  std::map<std::string, int> programs;
  for (int p = 0; p < plan.programs_size(); ++p) programs[plan.programs(p).name()] = p;
  int first_rank = measured.events.front().rank;
  for (const MeasuredEvent& event : measured.events) first_rank = std::min(first_rank, event.rank);
  struct Run {
    int64_t micro_step = 0;
    std::vector<RunTrace::Event> events;
  };
  std::map<int, Run> last;  // by program
  for (const MeasuredEvent& event : measured.events) {
    if (event.rank != first_rank || event.step != step) continue;
    const int program = programs.at(event.program);
    Run& run = last[program];
    // What an earlier run of the program in this step did is forgotten.
    if (event.micro_step < run.micro_step) continue;
    if (std::exchange(run.micro_step, event.micro_step) != event.micro_step) run.events.clear();
    run.events.push_back({.program = program,
                          .instruction = static_cast<int>(event.instruction),
                          .wait = event.is_wait,
                          .begin = event.begin,
                          .end = event.begin + event.seconds});
  }
  std::vector<RunTrace::Event> events;
  for (const auto& [program, run] : last) {
    double began = INFINITY;
    for (const RunTrace::Event& event : run.events) began = std::min(began, event.begin);
    for (RunTrace::Event event : run.events) {
      event.begin -= began;
      event.end -= began;
      events.push_back(event);
    }
  }
  return events;
}

}  // namespace

absl::StatusOr<RunTrace> ReadRunTrace(const std::string& path, const Explained& explained) {
  FT_ASSIGN_OR_RETURN(const MeasuredTrace measured, ReadTrace(path));
  FT_RETURN_IF_ERROR(CheckTrace(path, measured.run, explained, HashOf(explained.plan)));
  FT_RETURN_IF_ERROR(CheckMesh(path, measured.run, explained.bound.mesh));
  RunTrace trace;
  trace.file = FileName(path);
  trace.link = measured.run.link;
  FT_ASSIGN_OR_RETURN(trace.comparison, Compare(path, explained, measured));
  trace.events = EventsOf(measured, explained.plan, trace.comparison.first_step);
  return trace;
}

}  // namespace ftc
