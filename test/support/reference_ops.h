// One op in float64: operands to results. Used by Reference alone.
#pragma once

#include <functional>
#include <map>
#include <string>

#include "mlir/IR/Operation.h"
#include "test/support/array.h"

namespace mlir::ft::test {

struct OpEvaluation {
  Operation* op;
  std::vector<const Array*> in;
  std::vector<Array> out;  // zeros of the right shapes
  // What the op froze at the base point; empty there, and then for the op to fill.
  Array* frozen;
};

using OpFunction = std::function<void(OpEvaluation&)>;

// By op name without the dialect's.
const std::map<std::string, OpFunction>& referenceOps();

// Those of the primitives.
void addReferencePrimitives(std::map<std::string, OpFunction>& ops);

// Probability of each of the 2^bits codes under independent bits: G of ft.binary_mapper.
std::vector<double> codeProbabilities(const double* logits, int64_t bits);

}  // namespace mlir::ft::test
