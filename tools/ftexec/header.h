// What rank 0 prints before the first step.
#pragma once

#include <cstddef>
#include <optional>
#include <string>

#include "runtime/collective/create.h"
#include "runtime/collective/emulated_link.h"
#include "runtime/plan/report.h"
#include "tools/ftexec/flags.h"
#include "tools/ftexec/job.h"
#include "tools/ftexec/rank_device.h"

namespace ft {

struct CommunicationSummary {
  CollectiveBackend backend;
  size_t staging_bytes;
  std::optional<EmulatedLink> link;
};

// "emulated link of 10 Gb/s and 50 us"
std::string LinkText(const EmulatedLink& link);

// Model, strategy, ranks, memory, data: a few lines on stdout.
void PrintHeader(const Flags& flags, const Job& job, const RankDevice& device,
                 const CommunicationSummary& communication);

// What speaks against a data file's --data-format, and what of --eval-data is left out, a line each on
// stderr.
void PrintDoubts(const Flags& flags, const Job& job, const RankDevice& device);

// The plan alone, for simulated runs.
void PrintPlanLine(const Job& job, int world_size);

// What is held in memory beyond the arenas. On the CPU, of the process, now and at most so far: code,
// libraries, the plan, threads, data that is mapped, staging of communicators; on a GPU, of the whole device.
void PrintMemory(const Job& job, const RankDevice& device);

// Bytes of a rank's arenas by class.
MemoryReport MemoryOf(const Job& job);

// What the arena of a rank is made of, for when there is no room for it.
void PrintArena(const Job& job);

void PrintNote(const std::string& note);

}  // namespace ft
