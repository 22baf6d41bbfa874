// What kernels want from the memory planner: scratch, results in the place of operands.
#include "dialects/ft/dialect.h"
#include "runtime/base/cuda_workspace.h"
#include "runtime/base/workspace.h"

namespace mlir::ft {

namespace cuda = ::ft::cuda_workspace;
using ::ft::DeviceClass;

namespace {

RankedTensorType tensor(Value value) { return cast<RankedTensorType>(value.getType()); }

int64_t elements(Value value) { return tensor(value).getNumElements(); }

int64_t lastExtent(Value value) { return tensor(value).getShape().back(); }

// Product of all extents but the last.
int64_t rows(Value value) { return elements(value) / lastExtent(value); }

// Of a float tensor.
::ft::DType dtypeOf(Value value) {
  Type type = tensor(value).getElementType();
  return type.isBF16() ? ::ft::DType::kBF16 : type.isF16() ? ::ft::DType::kF16 : ::ft::DType::kF32;
}

// `out` is [batch, positions, heads * head size].
template <typename Attention>::ft::AttentionSizes attentionSizes(Attention op) {
  auto shape = tensor(op.getOut()).getShape();
  int64_t heads = op.getHeads();
  return {.batch = shape[0],
          .positions = shape[1],
          .heads = heads,
          .kv_heads = static_cast<int64_t>(op.getKvHeads()),
          .head_size = shape[2] / heads,
          .dtype = dtypeOf(op.getOut()),
          .segments = static_cast<bool>(op.getSegments())};
}

template <typename Attention> uint64_t attentionBytes(DeviceClass device, Attention op) {
  ::ft::AttentionSizes sizes = attentionSizes(op);
  return device == DeviceClass::kCuda ? cuda::Attention(sizes) : ::ft::AttentionWorkspace(sizes);
}

template <typename Attention> uint64_t attentionGradBytes(DeviceClass device, Attention op) {
  ::ft::AttentionSizes sizes = attentionSizes(op);
  return device == DeviceClass::kCuda ? cuda::AttentionGrad(sizes) : ::ft::AttentionGradWorkspace(sizes);
}

constexpr llvm::StringRef kMatmulOptions[] = {"a_format", "b_format", "scaling", "precise"};

constexpr llvm::StringRef kRotaryTableOptions[] = {"base", "frequencies", "scale"};

constexpr llvm::StringRef kAttentionOptions[] = {"window", "scale", "softcap", "alibi", "rate", "stream"};

} // namespace

llvm::StringRef opClassOf(OperationName name) {
  if (name.hasTrait<OfAttention>())
    return kOpClasses[0];
  if (name.hasTrait<OfMlp>())
    return kOpClasses[1];
  return name.hasTrait<OfNorms>() ? llvm::StringRef(kOpClasses[2]) : llvm::StringRef();
}

//===----------------------------------------------------------------------===//
// Operands
//===----------------------------------------------------------------------===//

llvm::SmallVector<Value> operandsBySegment(Operation *op) {
  auto segments = llvm::dyn_cast_or_null<DenseI32ArrayAttr>(
      op->getInherentAttr("operandSegmentSizes").value_or(Attribute()));
  if (!segments)
    return llvm::to_vector(op->getOperands());
  llvm::SmallVector<Value> result;
  unsigned next = 0;
  for (int32_t length : segments.asArrayRef()) {
    if (length == 0)
      result.push_back(Value());
    for (int32_t i = 0; i < length; ++i)
      result.push_back(op->getOperand(next++));
  }
  return result;
}

llvm::SmallVector<Value> EmbeddingGradOp::getKernelOperands() { return {getIds(), getDy(), getAcc()}; }

llvm::SmallVector<Value> GroupedDotGradOp::getKernelOperands() {
  return {getX(), getDy(), getEnds(), getAcc()};
}

llvm::SmallVector<Value> MatmulGeluOp::getKernelOperands() { return {getA(), getB(), getBias()}; }

llvm::SmallVector<Value> LinearCrossEntropyGradOp::getKernelOperands() {
  return {getDloss(), getX(), getWeight(), getTargets(), getAcc()};
}

llvm::SmallVector<Value> SumSquaresOp::getKernelOperands() { return {getGradient(), getAcc(), getFactor()}; }

//===----------------------------------------------------------------------===//
// Names and attributes
//===----------------------------------------------------------------------===//

// Rounding to another type is a kernel of its own.
llvm::StringRef CopyOp::getKernelName() { return getX().getType() == getType() ? "copy" : "cast"; }

llvm::ArrayRef<llvm::StringRef> MatmulOp::getOptionalAttributes() { return kMatmulOptions; }

llvm::ArrayRef<llvm::StringRef> RotaryTableOp::getOptionalAttributes() { return kRotaryTableOptions; }

llvm::ArrayRef<llvm::StringRef> AttentionOp::getOptionalAttributes() { return kAttentionOptions; }

llvm::ArrayRef<llvm::StringRef> QkvAttentionOp::getOptionalAttributes() { return kAttentionOptions; }

llvm::ArrayRef<llvm::StringRef> AttentionGradOp::getOptionalAttributes() { return kAttentionOptions; }

llvm::ArrayRef<llvm::StringRef> QkvAttentionGradOp::getOptionalAttributes() { return kAttentionOptions; }

//===----------------------------------------------------------------------===//
// Scratch
//===----------------------------------------------------------------------===//

MatmulOp::Extents MatmulOp::extents() {
  return {.m = getTransposeA() ? lastExtent(getA()) : rows(getA()),
          .n = lastExtent(getResult()),
          .k = getTransposeA() ? rows(getA()) : lastExtent(getA())};
}

uint64_t MatmulOp::getWorkspaceBytes(DeviceClass device) {
  if (!roundsToFloat8())
    return device == DeviceClass::kCuda ? cuda::Matmul() : 0;
  Extents e = extents();
  return device == DeviceClass::kCuda ? cuda::Float8Product(e.m, e.n, e.k)
                                      : ::ft::Float8Workspace(e.m, e.n, e.k);
}

uint64_t MatmulGeluOp::getWorkspaceBytes(DeviceClass device) {
  return device == DeviceClass::kCuda ? cuda::Matmul() : 0;
}

uint64_t MatmulGeluGradOp::getWorkspaceBytes(DeviceClass device) {
  return device == DeviceClass::kCuda ? cuda::Matmul() : 0;
}

// Of the product and of the sum, which run one after the other.
uint64_t MatmulBiasGradOp::getWorkspaceBytes(DeviceClass device) {
  auto sums = static_cast<uint64_t>(getPartialBytes()[static_cast<size_t>(device)]);
  return device == DeviceClass::kCuda ? std::max(uint64_t{cuda::Matmul()}, sums) : sums;
}

uint64_t EmbeddingGradOp::getWorkspaceBytes(DeviceClass device) {
  auto table = tensor(getResult()).getShape();
  return device == DeviceClass::kCuda ? cuda::EmbeddingGrad(elements(getIds()), table[0], table[1]) : 0;
}

uint64_t AttentionOp::getWorkspaceBytes(DeviceClass device) { return attentionBytes(device, *this); }

uint64_t QkvAttentionOp::getWorkspaceBytes(DeviceClass device) { return attentionBytes(device, *this); }

uint64_t AttentionGradOp::getWorkspaceBytes(DeviceClass device) { return attentionGradBytes(device, *this); }

uint64_t QkvAttentionGradOp::getWorkspaceBytes(DeviceClass device) {
  return attentionGradBytes(device, *this);
}

uint64_t LinearCrossEntropyOp::getWorkspaceBytes(DeviceClass device) {
  int64_t vocabulary = tensor(getWeight()).getDimSize(0);
  return device == DeviceClass::kCuda
             ? cuda::LinearCrossEntropy(rows(getX()), vocabulary, lastExtent(getX()), dtypeOf(getX()))
             : ::ft::LinearCrossEntropyWorkspace(rows(getX()), vocabulary);
}

uint64_t LinearCrossEntropyGradOp::getWorkspaceBytes(DeviceClass device) {
  int64_t vocabulary = tensor(getWeight()).getDimSize(0);
  return device == DeviceClass::kCuda
             ? cuda::LinearCrossEntropyGrad(rows(getX()), vocabulary, lastExtent(getX()), dtypeOf(getX()),
                                            dtypeOf(getDweight()))
             : ::ft::LinearCrossEntropyWorkspace(rows(getX()), vocabulary);
}

uint64_t LinearCrossEntropyLossGradOp::getWorkspaceBytes(DeviceClass device) {
  int64_t vocabulary = tensor(getWeight()).getDimSize(0);
  return device == DeviceClass::kCuda
             ? cuda::LinearCrossEntropyGrad(rows(getX()), vocabulary, lastExtent(getX()), dtypeOf(getX()),
                                            dtypeOf(getDweight()))
             : ::ft::LinearCrossEntropyWorkspace(rows(getX()), vocabulary);
}

uint64_t BinaryMapperGradOp::getWorkspaceBytes(DeviceClass device) {
  int64_t bits = lastExtent(getLogits());
  return device == DeviceClass::kCuda
             ? cuda::BinaryMapperGrad(rows(getLogits()), bits, lastExtent(getTable()), dtypeOf(getTable()))
             : ::ft::BinaryMapperGradWorkspace(rows(getLogits()), bits);
}

uint64_t SumSquaresOp::getWorkspaceBytes(DeviceClass device) {
  return device == DeviceClass::kCuda ? cuda::SumSquares() : 0;
}

uint64_t LossCountOp::getWorkspaceBytes(DeviceClass device) {
  return device == DeviceClass::kCuda ? cuda::LossCount(elements(getTargets())) : 0;
}

//===----------------------------------------------------------------------===//
// Results that accumulate into an operand's buffer
//===----------------------------------------------------------------------===//

Value EmbeddingGradOp::getTiedOperand(unsigned) { return getAcc(); }

Value MatmulOp::getTiedOperand(unsigned) { return getAcc(); }

Value GroupedDotGradOp::getTiedOperand(unsigned) { return getAcc(); }

Value LinearCrossEntropyGradOp::getTiedOperand(unsigned index) { return index == 1 ? getAcc() : Value(); }

Value LinearCrossEntropyLossGradOp::getTiedOperand(unsigned index) { return index == 2 ? getAcc() : Value(); }

Value SumSquaresOp::getTiedOperand(unsigned) { return getAcc(); }

template <typename Op> static bool takeAcc(Op op, Value acc) {
  if (op.getAcc())
    return false;
  op.getAccMutable().assign(acc);
  return true;
}

bool EmbeddingGradOp::takeAccumulator(unsigned, Value acc) { return takeAcc(*this, acc); }

bool MatmulOp::takeAccumulator(unsigned, Value acc) { return !getBias() && takeAcc(*this, acc); }

bool GroupedDotGradOp::takeAccumulator(unsigned, Value acc) { return takeAcc(*this, acc); }

bool LinearCrossEntropyGradOp::takeAccumulator(unsigned index, Value acc) {
  return index == 1 && takeAcc(*this, acc);
}

bool LinearCrossEntropyLossGradOp::takeAccumulator(unsigned index, Value acc) {
  return index == 2 && takeAcc(*this, acc);
}

} // namespace mlir::ft
