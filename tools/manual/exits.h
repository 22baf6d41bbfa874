// What all programs of ours mean by their exit statuses (runtime/base/exit_status.h).
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "runtime/base/exit_status.h"

namespace ft::manual {

inline std::vector<std::pair<std::string, std::string>> CommonExits() {
  return {{std::to_string(kExitOk), "Done."},
          {std::to_string(kExitUsage), "The command line is wrong; one line says how."},
          {std::to_string(kExitBadInput), "A file or the environment holds something that cannot be used."},
          {std::to_string(kExitIo), "The system refused: a file, memory, a socket."}};
}

}  // namespace ft::manual
