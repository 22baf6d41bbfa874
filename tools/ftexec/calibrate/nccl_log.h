// What nccl-tests (all_gather_perf, reduce_scatter_perf, all_reduce_perf) print: collectives of a cluster
// that this machine is no part of.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "runtime/plan/target.h"

namespace ft {

// The tables of a log: by size of whole buffers what they moved a second out of place; nodes, and ranks on
// each, from its list of ranks. Of a size that is there several times the median. Tables of other collectives
// are passed over. Errors: InvalidArgument, with the line, for a table without the name of a test or a list
// of ranks before it, ranks in several groups or unevenly on nodes, times of the host, times that are no
// positive numbers; for no table at all, and for more sizes than a target has room for.
absl::StatusOr<std::vector<Target::Collective>> ReadNcclLog(std::string_view text);

// Those of all logs at `paths`, which have commas between them; none for "". Errors: as above, after the
// path; those of files.
absl::StatusOr<std::vector<Target::Collective>> ReadNcclLogs(const std::string& paths);

// Puts collectives in the place of those that `target` has for the same groups, derives its links from the
// all-gathers of the largest groups, and takes over how many ranks a node has, where they are more.
void TakeCollectives(std::vector<Target::Collective> collectives, Target& target);

}  // namespace ft
