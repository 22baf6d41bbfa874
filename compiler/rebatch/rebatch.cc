#include "compiler/rebatch/rebatch.h"

#include "compiler/rebatch/batch_extents.h"
#include "compiler/rebatch/batch_sums.h"
#include "dialects/ft/dialect.h"
#include "dialects/ft/signature.h"
#include "mlir/IR/Verifier.h"

namespace ft::compiler {

using namespace mlir;

namespace {

/// The type with what changes made anew; null where it would not be a whole number.
RankedTensorType rebatched(Value value, const BatchExtents &extents, int64_t oldBatch, int64_t newBatch) {
  auto tensor = cast<RankedTensorType>(value.getType());
  llvm::SmallVector<int64_t> shape(tensor.getShape());
  for (auto [i, extent] : llvm::enumerate(shape)) {
    if (!extents.changes({value, static_cast<int64_t>(i)}))
      continue;
    if (extent * newBatch % oldBatch != 0)
      return {};
    extent = extent * newBatch / oldBatch;
  }
  return tensor.clone(shape);
}

/// Of every function that can be called, @forward first.
llvm::SmallVector<func::FuncOp> functionsOf(ModuleOp module, func::FuncOp forward) {
  llvm::SmallVector<func::FuncOp> functions = {forward};
  for (func::FuncOp function : module.getOps<func::FuncOp>())
    if (function != forward)
      functions.push_back(function);
  return functions;
}

LogicalResult setTypes(func::FuncOp function, const BatchExtents &extents, int64_t oldBatch,
                       int64_t newBatch) {
  Block &body = function.getBody().front();
  auto set = [&](Value value, Operation *op) -> LogicalResult {
    if (!extents.anyChanges(value))
      return success();
    RankedTensorType type = rebatched(value, extents, oldBatch, newBatch);
    if (!type)
      return op->emitOpError("keeps the batch from changing: ")
             << mlir::ft::shapeText(value.getType()) << " cannot have " << newBatch << " parts of "
             << oldBatch;
    value.setType(type);
    return success();
  };
  for (BlockArgument argument : body.getArguments())
    if (failed(set(argument, function)))
      return failure();
  for (Operation &op : body)
    for (Value result : op.getResults())
      if (failed(set(result, &op)))
        return failure();
  function.setFunctionType(FunctionType::get(function.getContext(), body.getArgumentTypes(),
                                             body.getTerminator()->getOperandTypes()));
  return success();
}

/// What the module says of its inputs.
void renewInputs(ModuleOp module, func::FuncOp forward) {
  std::optional<llvm::SmallVector<mlir::ft::ModelInput>> inputs = mlir::ft::inputsOf(module);
  if (!inputs)
    return;
  for (mlir::ft::ModelInput &input : *inputs)
    if (BlockArgument argument = mlir::ft::findInput(forward, input.name))
      input.type = cast<RankedTensorType>(argument.getType());
  mlir::ft::setInputs(module, *inputs);
}

} // namespace

LogicalResult setBatch(ModuleOp module, int64_t batch) {
  auto forward = module.lookupSymbol<func::FuncOp>(mlir::ft::kForwardFunction);
  int64_t old = mlir::ft::batchOf(forward);
  if (old == batch)
    return success();
  if (old <= 0)
    return forward.emitError("has no input with examples, so no batch that could change");
  llvm::SmallVector<func::FuncOp> functions = functionsOf(module, forward);
  BatchExtents extents;
  if (failed(extents.follow(functions)))
    return failure();
  for (func::FuncOp function : functions)
    if (failed(keepMeans(function, extents, old, batch)) || failed(setTypes(function, extents, old, batch)))
      return failure();
  if (module->hasAttr(mlir::ft::kBatchAttr))
    module->setAttr(mlir::ft::kBatchAttr, Builder(module.getContext()).getI64IntegerAttr(batch));
  renewInputs(module, forward);
  return verify(module);
}

} // namespace ft::compiler
