// The optimizer's step in host memory, where its state lies.
#include "compiler/lower/function_lowering.h"

namespace ft::compiler {

using namespace mlir;
using namespace mlir::ft;
using mlir::ftx::MemoryClass;
using mlir::ftx::View;

void FunctionLowering::lowerHostUpdate(UpdateOp op, const UnitState &unit) {
  Tag tag = Tag::of(op);
  KernelSpec spec{.name = "update", .attributes = updateAttributes(op)};
  spec.ins.push_back(gradientOnHost(op, unit));
  for (Value operand : op->getOperands().drop_front())
    spec.ins.push_back(tensorOnHost(operand, tag));
  bool isDirection = static_cast<bool>(op.getDirection());
  spec.outs.push_back(isDirection ? placeDirection(op, /*host=*/true) : unit.updatedMaster());
  for (StringRef role : op.getStates().getAsValueRange<StringAttr>())
    spec.outs.push_back(unit.state(role));
  // What the device computes with: rounded on the host, where it lies elsewhere.
  View working = isDirection ? View() : unit.updatedWorkingCopy();
  bool comesUp = working.isPresent() && !isOnHost(working);
  if (working.isPresent() && !unit.hasTwin())
    spec.outs.push_back(comesUp ? makeLike(working, "updated", MemoryClass::staging, tag, /*host=*/true)
                                : working);
  auto cost = cast<CostOpInterface>(op.getOperation());
  spec.flops = cost.getFlops();
  spec.bytes = cost.getBytes();
  program.launch(spec, tag);
  if (comesUp)
    copyIn(unit.hasTwin() ? unit.updatedMaster() : spec.outs.back(), working, tag);
  // Its buffer stands where it is first used, for what moves the copy.
  if (isDirection)
    copyIn(spec.outs.front(), places[op.getDirection()] = placeDirection(op), tag);
}

View FunctionLowering::gradientOnHost(UpdateOp op, const UnitState &unit) {
  Tag tag = Tag::of(op);
  View here = places[op.getGradient()];
  here.own = isa<FlatType>(op.getGradient().getType()) && !unit.wholeOptimizer();
  // What ft.orthogonalize has made of a direction is not the gradient, which was there before.
  View there = isOfWhole(op.getGradient()) ? makeLike(here, "down", MemoryClass::staging, tag, /*host=*/true)
                                           : unit.gradients();
  copyOut(here, there, tag);
  return there;
}

View FunctionLowering::tensorOnHost(Value value, const Tag &tag) {
  View &there = onHost[value];
  if (there.isPresent())
    return there;
  View here = places[value];
  there = {
      program.buffer(tag.loc, {.name = here.buffer.getDefiningOp<ftx::BufferOp>().getName().str() + ".down",
                               .memoryClass = MemoryClass::io,
                               .bytes = bytesOf(cast<RankedTensorType>(value.getType())),
                               .host = true,
                               .layer = tag.layer}),
      0, value.getType()};
  copyOut(here, there, {tag.loc, {}, tag.phase});
  return there;
}

} // namespace ft::compiler
