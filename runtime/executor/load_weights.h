// Parameters from a checkpoint into the arena.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "runtime/executor/executor.h"
#include "runtime/plan/plan.pb.h"

namespace ft {

// Reads of each parameter in the safetensors file (or folder) `path` what this rank holds, into the
// weights that the optimizer updates and, rounded, into a 16-bit working copy beside them. The executor's
// arena must be fresh: the rest of it, optimizer state and padding, stays zero. Returns a line about tensors
// of the file that nobody wanted, or nothing. Errors: those of SafetensorsReader::Open and MatchWeights;
// FailedPrecondition when the plan keeps its parameters neither in fp32 nor in bf16.
absl::StatusOr<std::string> LoadWeights(const proto::Plan& plan, const Executor& executor,
                                        const std::string& path);

}  // namespace ft
