// What a rank can check of a job by itself, before it meets the others.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "runtime/collective/rendezvous/rendezvous.h"
#include "tools/ftexec/check/rank_facts.h"
#include "tools/ftexec/flags.h"
#include "tools/ftexec/job.h"
#include "tools/ftexec/rank_device.h"

namespace ft {

struct PreparedCheck {
  Job job;                             // as far as it could be made
  std::unique_ptr<RankDevice> device;  // null: it could not be opened
  RankFacts facts;
};

// All that PrepareJob does, and the device; what fails is a finding, and the rest is looked at all the same.
PreparedCheck PrepareCheck(const Flags& flags, const LaunchEnvironment& environment,
                           const NcclSource& load_nccl);

// What the run will take of the host's memory and of /dev/shm, once it is known who is on which host. Adds a
// failure where ranks cannot talk as flags want it.
void ReckonMemory(const Flags& flags, const Rendezvous& rendezvous, PreparedCheck& prepared);

}  // namespace ft
