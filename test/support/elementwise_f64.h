// The elementwise primitives in f64, with the C library's functions: what kernels are compared with and
// derivatives are taken of.
#pragma once

#include "runtime/base/elementwise.h"

namespace ft::test {

// Truth values are 0 and 1, integers exact up to 2^53.
double EvaluateElementwise(Elementwise kind, const double (&operands)[kMaxElementwiseOperands],
                           const double (&parameters)[2]);

}  // namespace ft::test
