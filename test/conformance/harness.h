// Runs a case on a backend whose kernels work on host memory.
#pragma once

#include "absl/status/statusor.h"
#include "test/conformance/case.h"

namespace ft::conformance {

struct RunOptions {
  int num_threads = 1;
  bool share_reusable = false;  // run in place where the case allows it
};

// The results' values. InvalidArgument when there is no such kernel or it refuses the operands.
absl::StatusOr<Arrays> RunCase(const KernelRegistry& registry, const Case& c, const RunOptions& options);

// Empty when `got` is what the case expects, else what differs and where.
std::string Compare(const Case& c, const Arrays& got);

}  // namespace ft::conformance
