// What nccl-tests (all_gather_perf, reduce_scatter_perf, all_reduce_perf) print: collectives of a cluster
// that this machine is no part of.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "runtime/plan/target.h"

namespace ft {

// The tables of a log: by size of whole buffers what they moved a second out of place, nodes and ranks on
// each from its list of ranks. Of a size that is there several times the median. Tables of other collectives
// are passed over. Errors: InvalidArgument, with the line, for a table without a name of a test or a list of
// ranks before it, ranks that lie unevenly on nodes, sizes or times that are no positive numbers; a log
// without a table.
absl::StatusOr<std::vector<Target::Collective>> ReadNcclLog(std::string_view text);

// Puts what the logs at `paths` (with commas between them) have in the place of what `target` has for the
// same groups, and derives its links from the largest groups. Errors: those of the files and of ReadNcclLog,
// after the path.
absl::StatusOr<std::vector<Target::Collective>> ReadNcclLogs(const std::string& paths);
void TakeCollectives(std::vector<Target::Collective> collectives, Target& target);

}  // namespace ft
