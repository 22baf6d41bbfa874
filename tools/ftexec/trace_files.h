// The trace of a whole run.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "runtime/collective/communicator.h"
#include "runtime/metrics/trace.h"

namespace ft {

// Every rank writes its part; rank 0 joins those that it can see into `path` and removes them. When ranks on
// other hosts have written where rank 0 cannot see, all parts stay as they are. Every rank calls it. System
// errors: exit status 74.
absl::Status WriteTrace(const std::string& path, const TraceRecorder& recorder, Communicator& communicator);

}  // namespace ft
