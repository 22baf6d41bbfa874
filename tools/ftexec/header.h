// What rank 0 prints before the first step.
#pragma once

#include <cstddef>
#include <optional>
#include <string>

#include "runtime/collective/create.h"
#include "runtime/collective/emulated_link.h"
#include "tools/ftexec/flags.h"
#include "tools/ftexec/job.h"

namespace ft {

struct CommunicationSummary {
  CollectiveBackend backend;
  size_t staging_bytes;
  std::optional<EmulatedLink> link;
};

// "emulated link of 10 Gb/s and 50 us"
std::string LinkText(const EmulatedLink& link);

// Model, strategy, ranks, memory, data: a few lines on stdout.
void PrintHeader(const Flags& flags, const Job& job, const CommunicationSummary& communication);

// The plan alone, for simulated runs.
void PrintPlanLine(const Job& job, int world_size);

// What the process holds in memory beyond its arenas, now and at most so far: code, libraries, the plan,
// threads, data that is mapped, staging of communicators.
void PrintResidentMemory(const Job& job);

void PrintNote(const std::string& note);

}  // namespace ft
