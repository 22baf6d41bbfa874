#include "compiler/rebatch/batch_extents.h"

#include "dialects/ft/composites.h"
#include "dialects/ft/signature.h"

namespace ft::compiler {

using namespace mlir;
using mlir::ft::CallOp;
using mlir::ft::Dimension;
using mlir::ft::ExtentOpInterface;

namespace {

int64_t rankOf(Value value) {
  auto tensor = dyn_cast<RankedTensorType>(value.getType());
  return tensor ? tensor.getRank() : 0;
}

int64_t extentOf(Value value, int64_t dim) { return cast<RankedTensorType>(value.getType()).getShape()[dim]; }

} // namespace

void BatchExtents::same(Dimension a, Dimension b) {
  neighbours[{a.value, a.dim}].push_back({{b.value, b.dim}, current});
  neighbours[{b.value, b.dim}].push_back({{a.value, a.dim}, current});
}

// Where 1 is repeated, or stands for a batch of one.
void BatchExtents::follows(Dimension from, Dimension to) {
  if (extentOf(to.value, to.dim) == 1)
    neighbours[{from.value, from.dim}].push_back({{to.value, to.dim}, current});
}

void BatchExtents::fixed(Dimension extent) { kept.insert({{extent.value, extent.dim}, current}); }

bool BatchExtents::anyChanges(Value value) const {
  for (int64_t i = 0; i < rankOf(value); ++i)
    if (changes({value, i}))
      return true;
  return false;
}

LogicalResult BatchExtents::reach(const Neighbour &found) {
  auto keeper = kept.find(found.key);
  if (keeper != kept.end()) {
    // A parameter is what it is: the op that wants it to change is to blame.
    const bool byOp = keeper->second != nullptr && !isa<mlir::ft::GetOp>(keeper->second);
    return (byOp ? keeper->second : found.op)->emitOpError()
           << "keeps the batch from changing: dimension " << found.key.second << " of "
           << mlir::ft::shapeText(found.key.first.getType()) << " would change with it, and cannot";
  }
  if (changing.insert(found.key).second)
    pending.push_back(found.key);
  return success();
}

void BatchExtents::alike(Value a, Value b) {
  for (int64_t i = 0; i < rankOf(a); ++i)
    same({a, i}, {b, i});
}

// What is called has the extents of what it is called with.
void BatchExtents::relateCall(CallOp call) {
  func::FuncOp callee = mlir::ft::calleeOf(call);
  for (auto [operand, argument] : llvm::zip_equal(call.getInputs(), callee.getArguments()))
    alike(operand, argument);
  for (auto [result, returned] :
       llvm::zip_equal(call.getResults(), callee.getBody().front().getTerminator()->getOperands()))
    alike(result, returned);
}

void BatchExtents::relate(Operation *op) {
  current = op;
  if (auto relating = dyn_cast<ExtentOpInterface>(op))
    relating.relateExtents(*this);
  else if (auto call = dyn_cast<CallOp>(op))
    relateCall(call);
}

LogicalResult BatchExtents::seed(func::FuncOp forward) {
  for (BlockArgument argument : forward.getArguments()) {
    bool constant = mlir::ft::isConstantInput(forward, argument.getArgNumber());
    for (int64_t i = 0; i < rankOf(argument); ++i) {
      if (i > 0 || constant)
        kept.insert({{argument, i}, nullptr});
      else if (failed(reach({{argument, i}, forward})))
        return failure();
    }
  }
  return success();
}

LogicalResult BatchExtents::follow(llvm::ArrayRef<func::FuncOp> functions) {
  ofOne = mlir::ft::batchOf(functions.front()) == 1;
  for (func::FuncOp function : functions)
    for (Operation &op : function.getBody().front())
      relate(&op);
  if (failed(seed(functions.front())))
    return failure();
  while (!pending.empty()) {
    Key key = pending.back();
    pending.pop_back();
    auto found = neighbours.find(key);
    if (found == neighbours.end())
      continue;
    for (const Neighbour &neighbour : found->second)
      if (failed(reach(neighbour)))
        return failure();
  }
  auto changes = [&](Value value) { return anyChanges(value); };
  for (func::FuncOp function : functions)
    for (Operation &op : function.getBody().front())
      if (!isa<ExtentOpInterface, CallOp, func::ReturnOp>(op) &&
          (llvm::any_of(op.getOperands(), changes) || llvm::any_of(op.getResults(), changes)))
        return op.emitOpError(
            "keeps the batch from changing: it does not say what of it changes with the batch");
  return success();
}

} // namespace ft::compiler
