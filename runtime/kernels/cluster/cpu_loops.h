// The elementwise primitives of runtime/base/elementwise.def over chunks: floats as f32, integers and truth
// values as i64.
#pragma once

#include <cstdint>

#include "runtime/backends/cpu/loops.h"
#include "runtime/base/elementwise.h"

namespace ft::cpu {

// n results of operands at in[i][0 ... n - 1]; `parameters` are p and q. A chunk is an array of float or of
// int64_t: operands of conditions, results of comparisons and everything of integers are int64_t. Null where
// the domain has no such types.
using ChunkFunction = void (*)(const void* const* in, void* result, const double* parameters, int64_t n);

struct PrimitiveLoops {
  ChunkFunction of_floats[std::size(kElementwiseRows)];
  ChunkFunction of_integers[std::size(kElementwiseRows)];
};

FT_DECLARE_FOR_EVERY_ISA(PrimitiveLoops, kPrimitives)

}  // namespace ft::cpu
