// Products of floats of 8 bits, as the library for products has them.
#pragma once

#include <cstdint>

#include "runtime/base/float8.h"

namespace ft::cuda {

// Numbers of a and of b that share a scale, along k: all of a; 128; in 128 rows 128.
enum class ScaleOf { kTensor, kVectors, kSquares };

// Of what is stored with k innermost: a [m, k] and b [n, k], so the spec has transpose_b alone; k is a
// multiple of 16, of kFloat8Block unless both scales are of a tensor, and n of 16. a has vectors where b has
// vectors or squares.
struct Float8Product {
  Float8 a = Float8::kE4M3, b = Float8::kE4M3;
  ScaleOf scale_a = ScaleOf::kTensor, scale_b = ScaleOf::kTensor;
  bool operator==(const Float8Product&) const = default;
};

// Floats from one scale to the next along k and along the rows of an operand of `rows` rows: of vectors those
// of a block of k are neighbours, of squares those of a row of squares, in fours.
struct ScaleStrides {
  int64_t along_k = 0, along_rows = 0;
};
constexpr ScaleStrides StridesOf(ScaleOf scale, int64_t rows, int64_t k) {
  if (scale == ScaleOf::kTensor) return {};
  const int64_t blocks = (k + kFloat8Block - 1) / kFloat8Block;
  return scale == ScaleOf::kVectors ? ScaleStrides{rows, 1} : ScaleStrides{1, (blocks + 3) / 4 * 4};
}

}  // namespace ft::cuda
