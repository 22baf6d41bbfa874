// Operands of a product that are rounded to floats of 8 bits: what the attributes say, and which elements
// share a scale. The same on every device.
#pragma once

#include <cstdint>

#include "absl/status/statusor.h"
#include "runtime/base/float8.h"
#include "runtime/device/kernel.h"
#include "runtime/kernels/matmul/operands.h"

namespace ft {

// Elements of a stored matrix [rows, columns] that share a scale: blocks of so many rows and columns, those
// at the ends smaller.
struct ScaleBlocks {
  int64_t rows = 0, columns = 0;
};

struct Float8Operands {
  Float8 a = Float8::kE4M3, b = Float8::kE4M3;
  bool blockwise = false;
  // As they are stored.
  ScaleBlocks BlocksOfA(const ProductShape& shape) const;
  ScaleBlocks BlocksOfB(const ProductShape& shape) const;
};

// Whether any of the attributes says so.
bool RoundsToFloat8(const KernelAttributes& attributes);

// Errors: InvalidArgument for unknown formats or scaling, for two operands in e5m2, which no library
// multiplies, and for operands that are not bf16.
absl::StatusOr<Float8Operands> ReadFloat8(const KernelAttributes& attributes, const Tensor& a);

}  // namespace ft
