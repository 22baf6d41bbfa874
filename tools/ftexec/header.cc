#include "tools/ftexec/header.h"

#include <utility>

#include "fmt/format.h"
#include "runtime/base/standard_streams.h"
#include "runtime/plan/report.h"

namespace ft {
namespace {

// A run goes on when nobody reads what it says (fmt::print would throw).
template <typename... Args>
void Say(fmt::format_string<Args...> format, Args&&... args) {
  PrintOut(fmt::format(format, std::forward<Args>(args)...)).IgnoreError();
}

}  // namespace

void PrintPlanLine(const Job& job, int world_size) {
  const proto::Plan& plan = job.plan();
  Say("model {}, {} parameters; strategy {}, {} rank{} (replica {} x shard {}); plan {}\n", plan.model(),
      CountParameters(plan), plan.strategy(), world_size, world_size == 1 ? "" : "s", job.bound.mesh.replica,
      job.bound.mesh.shard, PlanHashText(job.file.hash));
}

void PrintHeader(const Flags& flags, const Job& job, const CommunicationSummary& communication) {
  const proto::Plan& plan = job.plan();
  PrintPlanLine(job, job.world_size());
  Say("arena {} bytes ({:.1f} MiB) per rank; {} thread{} per rank; ranks talk by {}", job.bound.arena_bytes(),
      static_cast<double>(job.bound.arena_bytes()) / (1 << 20), job.threads, job.threads == 1 ? "" : "s",
      Name(communication.backend));
  if (communication.staging_bytes > 0) Say(", which holds {} bytes more", communication.staging_bytes);
  Say("\ndata {} ({}, {} tokens, {} sequences); {} x {} tokens per rank, {} per step\n", job.data->path(),
      Name(job.data->format()), job.data->num_tokens(), job.data->num_sequences(), plan.batch(),
      plan.seq_len(), plan.batch() * plan.seq_len() * job.world_size());
}

void PrintNote(const std::string& note) { Say("{}\n", note); }

}  // namespace ft
