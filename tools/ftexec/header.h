// What rank 0 prints before the first step.
#pragma once

#include <cstddef>
#include <string>

#include "runtime/collective/create.h"
#include "tools/ftexec/flags.h"
#include "tools/ftexec/job.h"

namespace ft {

struct CommunicationSummary {
  CollectiveBackend backend;
  size_t staging_bytes;
};

// Model, strategy, ranks, memory, data: a few lines on stdout.
void PrintHeader(const Flags& flags, const Job& job, const CommunicationSummary& communication);

// The plan alone, for simulated runs.
void PrintPlanLine(const Job& job, int world_size);

void PrintNote(const std::string& note);

}  // namespace ft
