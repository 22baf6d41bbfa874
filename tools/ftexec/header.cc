#include "tools/ftexec/header.h"

#include <cstdint>
#include <cstdio>

#include "fmt/format.h"

namespace ft {
namespace {

uint64_t CountParameters(const proto::Plan& plan) {
  uint64_t count = 0;
  for (const proto::Parameter& parameter : plan.parameters()) {
    uint64_t elements = 1;
    for (uint64_t extent : parameter.shape()) elements *= extent;
    count += elements;
  }
  return count;
}

}  // namespace

void PrintPlanLine(const Job& job, int world_size) {
  const proto::Plan& plan = job.plan();
  fmt::print("model {}, {} parameters; strategy {}, {} rank{} (replica {} x shard {}); plan {}\n",
             plan.model(), CountParameters(plan), plan.strategy(), world_size, world_size == 1 ? "" : "s",
             job.bound.mesh.replica, job.bound.mesh.shard, PlanHashText(job.file.hash));
}

void PrintHeader(const Flags& flags, const Job& job, const CommunicationSummary& communication) {
  const proto::Plan& plan = job.plan();
  PrintPlanLine(job, job.world_size());
  fmt::print("arena {} bytes ({:.1f} MiB) per rank; {} thread{} per rank; ranks talk by {}",
             job.bound.arena_bytes(), static_cast<double>(job.bound.arena_bytes()) / (1 << 20), job.threads,
             job.threads == 1 ? "" : "s", Name(communication.backend));
  if (communication.staging_bytes > 0) fmt::print(", which holds {} bytes more", communication.staging_bytes);
  fmt::print("\ndata {} ({}, {} tokens, {} sequences); {} x {} tokens per rank, {} per step\n",
             job.data->path(), Name(job.data->format()), job.data->num_tokens(), job.data->num_sequences(),
             plan.batch(), plan.seq_len(), plan.batch() * plan.seq_len() * job.world_size());
  std::fflush(stdout);
}

void PrintNote(const std::string& note) {
  fmt::print("{}\n", note);
  std::fflush(stdout);
}

}  // namespace ft
