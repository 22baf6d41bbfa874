#include "tools/ftexec/simulate.h"

#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "fmt/format.h"
#include "runtime/backends/null/null_communicator.h"
#include "runtime/backends/null/null_device.h"
#include "runtime/base/output_check.h"
#include "runtime/base/standard_streams.h"
#include "runtime/base/status_macros.h"
#include "runtime/collective/plan_communicators.h"
#include "runtime/executor/executor.h"
#include "runtime/executor/trace_session.h"
#include "runtime/executor/training_programs.h"
#include "runtime/plan/inputs.h"
#include "tools/ftexec/header.h"
#include "tools/ftexec/job.h"
#include "tools/ftexec/outputs.h"

namespace ft {
namespace {

// Those of rank 0.
PlanCommunicators NullCommunicators(const proto::Plan& plan, const Mesh& mesh) {
  std::vector<std::unique_ptr<Communicator>> made;
  for (const CommunicatorGroup& group : CommunicatorGroups(plan, mesh, 0))
    made.push_back(std::make_unique<NullCommunicator>(0, static_cast<int>(group.ranks.size())));
  return PlanCommunicators(plan, mesh, 0, std::move(made));
}

}  // namespace

absl::Status Simulate(const Flags& flags) {
  FT_RETURN_IF_ERROR(CheckOutputs(flags));
  if (!flags.trace.empty()) FT_RETURN_IF_ERROR(CheckAtomicOutput(flags.trace, 0));
  Job job;
  FT_RETURN_IF_ERROR(LoadPlan(flags, flags.world_size, /*local_world_size=*/0, job));
  const Target& target = job.plan().target();
  NullDevice device(CostClock(job.plan(), job.bound, target));
  const PlanCommunicators communicators = NullCommunicators(job.plan(), job.bound.mesh);
  FT_ASSIGN_OR_RETURN(const std::unique_ptr<Executor> executor,
                      Executor::Create(job.plan(), job.bound, device, communicators.table(), 0));
  FT_ASSIGN_OR_RETURN(const TrainingPrograms programs, FindTrainingPrograms(job.plan(), *executor));
  std::optional<TraceSession> trace;
  if (!flags.trace.empty())
    trace.emplace(job.plan(), *executor, programs.num_commands(*executor), 0,
                  TraceSession::Steps{.count = flags.trace_steps});
  if (trace.has_value())
    trace->SetRun({.plan = PlanHashText(job.file.hash),
                   .device = "null",
                   .replica = job.bound.mesh.replica,
                   .shard = job.bound.mesh.shard,
                   .target = job.plan().target().name()});
  const int64_t steps = flags.run.steps.value_or(1);
  for (int64_t step = 0; step < steps; ++step) {
    if (trace.has_value()) trace->BeginStep(step);
    for (int64_t i = 1; i <= programs.micro_steps; ++i) {
      const int program = i < programs.micro_steps ? programs.micro : programs.step;
      if (trace.has_value()) trace->BeginProgram(program);
      FT_RETURN_IF_ERROR(executor->Run(program));
    }
    if (trace.has_value()) trace->EndStep();
  }
  const int world_size = job.bound.mesh.world_size();
  PrintPlanLine(job, world_size);
  FT_RETURN_IF_ERROR(PrintOut(fmt::format("arena {} bytes per rank\n", executor->arena_bytes())));
  if (executor->host_arena_bytes() > 0)
    FT_RETURN_IF_ERROR(PrintOut(fmt::format("host arena {} bytes per rank\n", executor->host_arena_bytes())));
  if (steps > 0) {
    const double seconds = device.now() / static_cast<double>(steps);
    const double tokens = static_cast<double>(job.plan().batch() * job.plan().seq_len()) *
                          static_cast<double>(programs.micro_steps) * world_size;
    FT_RETURN_IF_ERROR(
        PrintOut(fmt::format("simulated step {:.3f} ms, {:.0f} {}/s, on {} with {} rank{} on a node\n",
                             seconds * 1e3, tokens / seconds, CountedWord(job.plan()), target.name(),
                             target.ranks_per_node(), target.ranks_per_node() == 1 ? "" : "s")));
  }
  return trace.has_value() ? trace->recorder().Write(flags.trace) : absl::OkStatus();
}

}  // namespace ft
