// The lists in which Slurm's variables name the nodes of a step and count the tasks on each.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace ft {

// "node[01-03,7],gpu-a[1-2]b" is node01, node02, node03, node7, gpu-a1b, gpu-a2b. Numbers have at least as
// many digits as the first of their range; of several brackets in one name the last one runs fastest. Errors:
// InvalidArgument, what is wrong with the list ("has a '[' without ']'"), for a message that names it; also
// above 65,536 nodes, which is more than Slurm knows.
absl::StatusOr<std::vector<std::string>> ExpandHostList(absl::string_view list);

// "4(x2),3" is 4, 4, 3: tasks on each node, in the order of the list of nodes. Errors: as above.
absl::StatusOr<std::vector<int>> ExpandTasksPerNode(absl::string_view counts);

}  // namespace ft
