// What a product with the sums of one of its operands beside it must give.
#pragma once

#include <vector>

#include "absl/status/statusor.h"
#include "test/conformance/bench.h"
#include "test/conformance/case.h"

namespace ft::conformance {

// `exact`: of multiples of 1/8 below 2, whose sums are exact in f32 in any order, and are rounded alike
// however they were added.
std::vector<Case> BiasGradCases(bool exact);

// The results of a case by the kernels that it replaces, to the last bit: the product, and the cluster of the
// sums.
absl::StatusOr<Arrays> RunProductAndSums(Bench& bench, const Case& c);

}  // namespace ft::conformance
