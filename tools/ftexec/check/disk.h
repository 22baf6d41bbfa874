// Room on disks for what a run writes.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "tools/ftexec/check/finding.h"
#include "tools/ftexec/flags.h"
#include "tools/ftexec/job.h"

namespace ft {

// The nearest folder on the way to `path` that exists.
std::string ExistingFolderOf(const std::string& path);

// The folders on the way to `path`, itself included, that do not exist, outermost first.
std::vector<std::string> MissingFolders(const std::string& path);

// How many checkpoints a run adds to those in its folder, at most at one time. `steps`: that it takes; a
// checkpoint is written before those that are not kept go. With --save-every by time: that of the end alone.
uint64_t CheckpointsToCome(const Flags& flags, int64_t steps, uint64_t there);

// What this rank looks at: rank 0 at what the run writes, the others at their logs. `one_host`: all ranks are
// on one; `first_step`: that the run begins with.
Finding CheckDisk(const Flags& flags, const Job& job, bool one_host, int64_t first_step);

}  // namespace ft
