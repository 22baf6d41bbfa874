// Cluster bodies in f64, one op after another over whole tensors, each value rounded to its type.
#pragma once

#include "compiler/codegen/testing/tensors.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace ft::compiler::testing {

std::vector<HostTensor> evaluate(mlir::func::FuncOp body, const std::vector<HostTensor> &inputs);

} // namespace ft::compiler::testing
