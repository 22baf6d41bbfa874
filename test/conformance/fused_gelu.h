// What a product with GELU, or with its gradient, must give.
#pragma once

#include <vector>

#include "absl/status/statusor.h"
#include "test/conformance/bench.h"
#include "test/conformance/case.h"

namespace ft::conformance {

// The results of a case of matmul_gelu or matmul_gelu_grad by the kernels that it replaces, to the last bit:
// the product, then GELU or its gradient of what came out.
absl::StatusOr<Arrays> RunProductThenGelu(Bench& bench, const Case& fused);

// The case for a library that computes GELU from the sum before it is rounded, with a tanh of `tanh_error`.
Case WithGeluOfTheSum(Case fused, double tanh_error);

// Whether it is one of a product with GELU that libraries have epilogues for: of 16 bits, the rows of what is
// kept multiples of eight.
bool HasEpilogue(const Case& c);
std::vector<Case> EpilogueCases();

}  // namespace ft::conformance
