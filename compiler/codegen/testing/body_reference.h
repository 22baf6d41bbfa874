// Cluster bodies in f64, one op after another over whole tensors, each value rounded to its type.
#pragma once

#include "compiler/codegen/testing/tensors.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace ft::compiler::testing {

/// Of one op, which has one result.
HostTensor evaluateOp(mlir::Operation *op, const std::vector<HostTensor> &operands);

using OpEvaluator = llvm::function_ref<HostTensor(mlir::Operation *, const std::vector<HostTensor> &)>;
/// The results of a body, with each op evaluated so.
std::vector<HostTensor> evaluate(mlir::func::FuncOp body, const std::vector<HostTensor> &inputs,
                                 OpEvaluator evaluator = evaluateOp);

} // namespace ft::compiler::testing
