// The files that weights start from: --init, and --adapter beside it.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "tools/ftexec/job.h"

namespace ft {

// Opens them for the plan of `job`, and says what they lack. Errors: those of OpenInitialWeights and
// OpenInitialAdapters; InvalidArgument for weights that evaluation needs and no file has.
absl::Status TakeInit(const Flags& flags, Job& job);

// The weights that --adapter=PATH reads; empty where it is not given.
std::string AdapterFile(const std::string& path);

}  // namespace ft
