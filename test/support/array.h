// A dense row-major tensor of doubles, for tests. Integers are held exactly, up to 2^53.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "mlir/IR/BuiltinTypes.h"

namespace mlir::ft::test {

struct Array {
  std::vector<int64_t> shape;
  std::vector<double> data;

  Array() = default;
  explicit Array(std::vector<int64_t> dims, double value = 0) : shape(std::move(dims)) {
    int64_t count = 1;
    for (int64_t dim : shape) count *= dim;
    data.assign(count, value);
  }
  // Zeros in the shape of a ranked tensor type.
  explicit Array(Type type) : Array(cast<RankedTensorType>(type).getShape().vec()) {}

  int64_t size() const { return data.size(); }
  int64_t last() const { return shape.empty() ? 1 : shape.back(); }
  int64_t rows() const { return size() / last(); }
  const double* row(int64_t index) const { return data.data() + index * last(); }
  double* row(int64_t index) { return data.data() + index * last(); }
};

// By the name of a parameter or of an input.
using NamedArrays = std::map<std::string, Array>;

// What a step is run on.
struct StepInputs {
  Array tokens, targets;
  NamedArrays inputs;  // of ft.input: "rng"; of the model, those that are neither of the two above

  // Of the model.
  const Array& of(const std::string& name) const {
    auto other = inputs.find(name);
    return other != inputs.end() ? other->second : name == "targets" ? targets : tokens;
  }
};

}  // namespace mlir::ft::test
