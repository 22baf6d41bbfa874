// What kernels want from the memory planner: scratch, results in the place of operands.
#include "dialects/ft/dialect.h"
#include "runtime/base/workspace.h"

namespace mlir::ft {
namespace {

RankedTensorType tensor(Value value) { return cast<RankedTensorType>(value.getType()); }

int64_t lastExtent(Value value) { return tensor(value).getShape().back(); }

// Product of all extents but the last.
int64_t rows(Value value) { return tensor(value).getNumElements() / lastExtent(value); }

} // namespace

// Rounding to another type is a kernel of its own.
llvm::StringRef CopyOp::getKernelName() { return getX().getType() == getType() ? "copy" : "cast"; }

//===----------------------------------------------------------------------===//
// Scratch
//===----------------------------------------------------------------------===//

uint64_t LayerNormGradOp::getWorkspaceBytes() { return ::ft::LayerNormGradWorkspace(lastExtent(getX())); }

uint64_t RmsNormGradOp::getWorkspaceBytes() { return ::ft::RmsNormGradWorkspace(lastExtent(getX())); }

uint64_t SumLeadingOp::getWorkspaceBytes() {
  return ::ft::SumLeadingWorkspace(tensor(getResult()).getNumElements());
}

uint64_t AttentionOp::getWorkspaceBytes() { return ::ft::AttentionWorkspace(); }

uint64_t AttentionGradOp::getWorkspaceBytes() {
  auto shape = tensor(getQ()).getShape();
  return ::ft::AttentionGradWorkspace(shape[0], getHeads(), shape[1]);
}

uint64_t LinearCrossEntropyOp::getWorkspaceBytes() {
  return ::ft::LinearCrossEntropyWorkspace(rows(getX()), tensor(getWeight()).getDimSize(0));
}

uint64_t LinearCrossEntropyGradOp::getWorkspaceBytes() {
  return ::ft::LinearCrossEntropyWorkspace(rows(getX()), tensor(getWeight()).getDimSize(0));
}

uint64_t LinearCrossEntropyLossGradOp::getWorkspaceBytes() {
  return ::ft::LinearCrossEntropyWorkspace(rows(getX()), tensor(getWeight()).getDimSize(0));
}

uint64_t BinaryMapperGradOp::getWorkspaceBytes() {
  return ::ft::BinaryMapperGradWorkspace(rows(getLogits()), lastExtent(getLogits()));
}

//===----------------------------------------------------------------------===//
// Results that accumulate into an operand's buffer
//===----------------------------------------------------------------------===//

Value EmbeddingGradOp::getTiedOperand(unsigned) { return getAcc(); }

Value MatmulOp::getTiedOperand(unsigned) { return getAcc(); }

Value LinearCrossEntropyGradOp::getTiedOperand(unsigned index) { return index == 1 ? getAcc() : Value(); }

Value LinearCrossEntropyLossGradOp::getTiedOperand(unsigned index) { return index == 2 ? getAcc() : Value(); }

Value SumSquaresOp::getTiedOperand(unsigned) { return getAcc(); }

Value HealthOp::getTiedOperand(unsigned) { return getAcc(); }

//===----------------------------------------------------------------------===//
// Elementwise kernels: the result may take the place of an operand that dies
//===----------------------------------------------------------------------===//

Value AddOp::getReusableOperand(unsigned) { return getA(); }

Value MulOp::getReusableOperand(unsigned) { return getA(); }

Value ScaleOp::getReusableOperand(unsigned) { return getX(); }

Value GeluOp::getReusableOperand(unsigned) { return getX(); }

Value GeluGradOp::getReusableOperand(unsigned) { return getDy(); }

Value SwigluOp::getReusableOperand(unsigned) { return getGate(); }

Value SwigluGradOp::getReusableOperand(unsigned index) { return index == 0 ? getGate() : getUp(); }

Value RopeOp::getReusableOperand(unsigned) { return getX(); }

Value DropoutOp::getReusableOperand(unsigned) { return getX(); }

Value CrossEntropyGradOp::getReusableOperand(unsigned) { return getLogits(); }

} // namespace mlir::ft
