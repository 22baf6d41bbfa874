// Tensors of tests: elements as f64, each a value of its type, and as kernels have them in memory.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "mlir/IR/BuiltinTypes.h"

namespace ft::compiler::testing {

/// The nearest value of an element type of a kernel, ties to even; integers and truth values as they are.
double rounded(double value, mlir::Type element);

/// The distance of neighbours of f32, bf16 or f16 around a number.
double ulpOf(double value, mlir::Type element);

struct HostTensor {
  mlir::RankedTensorType type;
  std::vector<double> values;

  explicit HostTensor(mlir::RankedTensorType type) : type(type), values(type.getNumElements()) {}
  mlir::Type element() const { return type.getElementType(); }
  std::string toMemory() const;
  void fromMemory(const char *bytes);
};

int64_t bytesOf(mlir::RankedTensorType type);

} // namespace ft::compiler::testing
