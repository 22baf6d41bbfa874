// Products of operands that are rounded to floats of 8 bits.
#pragma once

#include <vector>

#include "test/conformance/case.h"

namespace ft::conformance {

// Part of MatmulCases.
void AddFloat8Cases(std::vector<Case>& cases);

bool IsFloat8(const Case& c);

// What tensor cores may be off by: Hopper's keep some 14 bits of a sum of products of 8 bits, and add 32
// products to it at a time (DeepSeek-V3, arXiv 2412.19437, section 3.3.2).
Case WithFloat8Sums(Case c);

}  // namespace ft::conformance
