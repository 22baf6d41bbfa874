// What a fused residual norm must give to the last bit.
#pragma once

#include <vector>

#include "absl/status/statusor.h"
#include "test/conformance/bench.h"
#include "test/conformance/case.h"

namespace ft::conformance {

// The cases of add_layer_norm and add_rms_norm.
std::vector<Case> ResidualNormCases();

// The results of such a case by the kernels that it replaces: add, then the norm of the sum that came out.
absl::StatusOr<Arrays> RunSumThenNorm(Bench& bench, const Case& fused);

}  // namespace ft::conformance
