// Part of MatmulCases.
#pragma once

#include <vector>

#include "test/conformance/case.h"

namespace ft::conformance {

void AddFloat8Cases(std::vector<Case>& cases);

}  // namespace ft::conformance
