// Where a run writes, against where it reads and what else it writes.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "tools/ftexec/flags.h"

namespace ft {

// What a run writes must not be what it reads, lie among its data, nor be written twice or over. Only
// --save-weights may replace --init: that is read whole before. Looks at names alone. Errors:
// InvalidArgument, naming the two options.
absl::Status CheckOutputs(const Flags& flags);

// Whether a run with these flags reads, or one that comes after it would, what is written at `path`: as data.
bool LiesAmongData(const std::string& path, const Flags& flags);

}  // namespace ft
