// One started rank.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "runtime/collective/net/socket.h"

namespace ft::run {

struct RankProcess {
  int rank = 0;
  pid_t pid = -1;  // and process group
  Fd out, err;     // its stdout and stderr, to be read from; invalid when it has ours
};

// Starts `command` (found in PATH) in a process group of its own, with the given environment and /dev/null as
// stdin. It is killed when the calling thread ends, however that happens. With `capture`, its output comes
// through pipes. Errors: NotFound or PermissionDenied when the program cannot be run, Internal.
absl::StatusOr<RankProcess> StartRank(int rank, const std::vector<std::string>& command,
                                      const std::vector<std::string>& environment, bool capture);

}  // namespace ft::run
