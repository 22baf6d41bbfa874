#include "tools/ftexec/simulate.h"

#include <memory>
#include <optional>

#include "fmt/format.h"
#include "runtime/backends/null/null_communicator.h"
#include "runtime/backends/null/null_device.h"
#include "runtime/base/standard_streams.h"
#include "runtime/base/status_macros.h"
#include "runtime/executor/executor.h"
#include "runtime/executor/trace_session.h"
#include "tools/ftexec/header.h"
#include "tools/ftexec/job.h"

namespace ft {

absl::Status Simulate(const Flags& flags) {
  Job job;
  FT_RETURN_IF_ERROR(LoadPlan(flags.plan, flags.world_size, job));
  NullDevice device;
  NullCommunicator gather(0, flags.world_size), reduce(0, flags.world_size);
  FT_ASSIGN_OR_RETURN(
      const std::unique_ptr<Executor> executor,
      Executor::Create(job.plan(), job.bound, device, {.gather = &gather, .reduce = &reduce}, 0));
  FT_ASSIGN_OR_RETURN(const int program, executor->FindProgram("train_step"));
  std::optional<TraceSession> trace;
  if (!flags.trace.empty()) trace.emplace(*executor, program, 0, flags.trace_steps);
  const int64_t steps = flags.steps.value_or(1);
  for (int64_t step = 0; step < steps; ++step) {
    if (trace.has_value()) trace->BeforeStep(step);
    FT_RETURN_IF_ERROR(executor->Run(program));
  }
  PrintPlanLine(job, flags.world_size);
  FT_RETURN_IF_ERROR(PrintOut(fmt::format("arena {} bytes per rank\n", executor->arena_bytes())));
  if (steps > 0) {
    const double seconds = device.now() / static_cast<double>(steps);
    const double tokens = static_cast<double>(job.plan().batch() * job.plan().seq_len()) * flags.world_size;
    const NullMachine machine;
    FT_RETURN_IF_ERROR(PrintOut(fmt::format(
        "simulated step {:.3f} ms, {:.0f} tokens/s, on a nominal machine: {:.0f} TFLOP/s, {:.1f} TB/s, link "
        "{:.0f} GB/s\n",
        seconds * 1e3, tokens / seconds, machine.flops_per_s * 1e-12, machine.bytes_per_s * 1e-12,
        machine.link_bytes_per_s * 1e-9)));
  }
  return trace.has_value() ? trace->recorder().Write(flags.trace) : absl::OkStatus();
}

}  // namespace ft
