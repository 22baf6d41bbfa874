// Verifiers, derivatives and costs of the primitives that are not elementwise.
#include "dialects/ft/elementwise.h"
#include "dialects/ft/verify.h"

namespace mlir::ft {
namespace {

using Gradients = llvm::SmallVector<Value>;
using verify::shape;
using verify::tensor;

bool isFloat(Value value) { return isa<FloatType>(tensor(value).getElementType()); }

// A numbers attribute has one for each dimension of `of`.
LogicalResult verifyNumbers(Operation *op, llvm::StringRef name, llvm::ArrayRef<int64_t> numbers,
                            llvm::StringRef ofName, Value of) {
  if (numbers.size() == shape(of).size())
    return success();
  return op->emitOpError() << name << " has " << numbers.size()
                           << " numbers; expected one for each dimension of " << ofName << ", which is "
                           << shapeText(of.getType());
}

// `part` lies inside of `whole` when it begins at `at`.
LogicalResult verifyBox(Operation *op, llvm::StringRef name, llvm::ArrayRef<int64_t> at,
                        llvm::StringRef partName, Value part, llvm::StringRef wholeName, Value whole) {
  if (failed(verifyNumbers(op, name, at, wholeName, whole)))
    return failure();
  if (shape(part).size() != shape(whole).size())
    return op->emitOpError() << partName << " is " << shapeText(part.getType())
                             << "; expected as many dimensions as " << wholeName << ", which is "
                             << shapeText(whole.getType());
  for (auto [i, begin] : llvm::enumerate(at))
    if (begin < 0 || begin > shape(whole)[i] - shape(part)[i])
      return op->emitOpError() << shape(part)[i] << " elements from " << begin
                               << " on are outside of dimension " << i << " of " << wholeName
                               << ", which has " << shape(whole)[i];
  return success();
}

Value broadcastTo(OpBuilder &builder, Location loc, Value value, RankedTensorType type) {
  auto to = type.clone(tensor(value).getElementType());
  return to == value.getType() ? value : Value(BroadcastOp::create(builder, loc, to, value));
}

Value reshapeTo(OpBuilder &builder, Location loc, Value value, llvm::ArrayRef<int64_t> dims) {
  auto to = tensor(value).clone(dims);
  return to == value.getType() ? value : Value(ReshapeOp::create(builder, loc, to, value));
}

Value sumOver(OpBuilder &builder, Location loc, Value value, llvm::ArrayRef<int64_t> dims) {
  llvm::SmallVector<int64_t> kept;
  for (auto [i, extent] : llvm::enumerate(shape(value)))
    if (!llvm::is_contained(dims, static_cast<int64_t>(i)))
      kept.push_back(extent);
  return ReduceOp::create(builder, loc, tensor(value).clone(kept), value, builder.getStringAttr("sum"),
                          builder.getDenseI64ArrayAttr(dims));
}

// The shape of a reduction with 1 for what it reduces: broadcasting gives it that of its operand again.
llvm::SmallVector<int64_t> withOnes(ReduceOp op) {
  llvm::SmallVector<int64_t> dims(shape(op.getX()));
  for (int64_t reduced : op.getDims())
    dims[reduced] = 1;
  return dims;
}

} // namespace

//===----------------------------------------------------------------------===//
// convert
//===----------------------------------------------------------------------===//

LogicalResult ConvertOp::verify() {
  if (isFloat(getX()) && isFloat(getResult()))
    return emitOpError("converts between floats; --mixed-precision decides their types");
  return verify::shapeIs(*this, "the result", getResult(), shape(getX()), "the shape of x");
}

// Never asked for: one side has no gradient.
Gradients ConvertOp::buildGradient(OpBuilder &, ValueRange, ArrayRef<bool>, ValueRange,
                                   SmallVectorImpl<bool> &) {
  return Gradients(1);
}

ElementRole ConvertOp::getElementRole(unsigned) { return ElementRole::Rounded; }

//===----------------------------------------------------------------------===//
// broadcast
//===----------------------------------------------------------------------===//

LogicalResult BroadcastOp::verify() {
  if (failed(verify::sameElementType(*this, "the result", getResult(), "x", getX())))
    return failure();
  llvm::ArrayRef<int64_t> from = shape(getX()), to = shape(getResult());
  bool fits = from.size() <= to.size();
  for (size_t i = 1; fits && i <= from.size(); ++i)
    fits = from[from.size() - i] == 1 || from[from.size() - i] == to[to.size() - i];
  if (fits)
    return success();
  return emitOpError() << "x is " << shapeText(from) << "; expected the last dimensions of the result, "
                       << shapeText(to) << ", or 1 in the place of some (ft.reshape adds dimensions of 1)";
}

OpFoldResult BroadcastOp::fold(FoldAdaptor) { return getX().getType() == getType() ? getX() : Value(); }

Gradients BroadcastOp::buildGradient(OpBuilder &builder, ValueRange resultGrads, ArrayRef<bool>, ValueRange,
                                     SmallVectorImpl<bool> &) {
  Value dy = resultGrads[0];
  llvm::ArrayRef<int64_t> from = shape(getX()), to = shape(getResult());
  size_t missing = to.size() - from.size();
  llvm::SmallVector<int64_t> repeated;
  for (size_t i = 0; i < to.size(); ++i)
    if (i < missing || (from[i - missing] == 1 && to[i] != 1))
      repeated.push_back(static_cast<int64_t>(i));
  if (repeated.size() == missing) // new dimensions alone
    return {dy.getType() == getX().getType()
                ? dy
                : Value(ReduceOp::create(builder, getLoc(), tensor(getX()), dy))};
  return {reshapeTo(builder, getLoc(), sumOver(builder, getLoc(), dy, repeated), from)};
}

ElementRole BroadcastOp::getElementRole(unsigned) { return ElementRole::Activation; }

//===----------------------------------------------------------------------===//
// reshape, transpose
//===----------------------------------------------------------------------===//

LogicalResult ReshapeOp::verify() {
  if (failed(verify::sameElementType(*this, "the result", getResult(), "x", getX())))
    return failure();
  if (tensor(getX()).getNumElements() == tensor(getResult()).getNumElements())
    return success();
  return emitOpError() << "the result is " << shapeText(getResult().getType())
                       << ", which has other than the " << tensor(getX()).getNumElements()
                       << " elements of x, " << shapeText(getX().getType());
}

OpFoldResult ReshapeOp::fold(FoldAdaptor) { return getX().getType() == getType() ? getX() : Value(); }

Gradients ReshapeOp::buildGradient(OpBuilder &builder, ValueRange resultGrads, ArrayRef<bool>, ValueRange,
                                   SmallVectorImpl<bool> &) {
  return {reshapeTo(builder, getLoc(), resultGrads[0], shape(getX()))};
}

ElementRole ReshapeOp::getElementRole(unsigned) { return ElementRole::Sum; }

LogicalResult TransposeOp::verify() {
  llvm::ArrayRef<int64_t> permutation = getPermutation();
  if (failed(verify::sameElementType(*this, "the result", getResult(), "x", getX())) ||
      failed(verifyNumbers(*this, "permutation", permutation, "x", getX())))
    return failure();
  llvm::SmallVector<int64_t> expected;
  for (int64_t from : permutation) {
    if (from < 0 || from >= static_cast<int64_t>(permutation.size()) || llvm::count(permutation, from) != 1)
      return emitOpError() << "permutation must name each of the " << permutation.size()
                           << " dimensions once, from 0 on; it has " << from
                           << (llvm::count(permutation, from) > 1 ? " twice" : "");
    expected.push_back(shape(getX())[from]);
  }
  return verify::shapeIs(*this, "the result", getResult(), expected,
                         "the dimensions of x in the order of the permutation");
}

OpFoldResult TransposeOp::fold(FoldAdaptor) {
  return llvm::is_sorted(getPermutation()) && getX().getType() == getType() ? getX() : Value();
}

Gradients TransposeOp::buildGradient(OpBuilder &builder, ValueRange resultGrads, ArrayRef<bool>, ValueRange,
                                     SmallVectorImpl<bool> &) {
  llvm::SmallVector<int64_t> inverse(getPermutation().size());
  for (auto [to, from] : llvm::enumerate(getPermutation()))
    inverse[from] = static_cast<int64_t>(to);
  return {TransposeOp::create(builder, getLoc(), getX().getType(), resultGrads[0],
                              builder.getDenseI64ArrayAttr(inverse))};
}

ElementRole TransposeOp::getElementRole(unsigned) { return ElementRole::Sum; }

//===----------------------------------------------------------------------===//
// slice, pad
//===----------------------------------------------------------------------===//

LogicalResult SliceOp::verify() {
  if (failed(verify::sameElementType(*this, "the result", getResult(), "x", getX())))
    return failure();
  return verifyBox(*this, "begin", getBegin(), "the result", getResult(), "x", getX());
}

OpFoldResult SliceOp::fold(FoldAdaptor) { return getX().getType() == getType() ? getX() : Value(); }

Gradients SliceOp::buildGradient(OpBuilder &builder, ValueRange resultGrads, ArrayRef<bool>, ValueRange,
                                 SmallVectorImpl<bool> &) {
  return {PadOp::create(builder, getLoc(), getX().getType(), resultGrads[0], getBeginAttr())};
}

ElementRole SliceOp::getElementRole(unsigned) { return ElementRole::Sum; }

LogicalResult PadOp::verify() {
  if (failed(verify::sameElementType(*this, "the result", getResult(), "x", getX())))
    return failure();
  return verifyBox(*this, "low", getLow(), "x", getX(), "the result", getResult());
}

OpFoldResult PadOp::fold(FoldAdaptor) { return getX().getType() == getType() ? getX() : Value(); }

Gradients PadOp::buildGradient(OpBuilder &builder, ValueRange resultGrads, ArrayRef<bool>, ValueRange,
                               SmallVectorImpl<bool> &) {
  return {SliceOp::create(builder, getLoc(), getX().getType(), resultGrads[0], getLowAttr())};
}

ElementRole PadOp::getElementRole(unsigned) { return ElementRole::Sum; }

//===----------------------------------------------------------------------===//
// random_bits
//===----------------------------------------------------------------------===//

LogicalResult RandomBitsOp::verify() {
  if (failed(verify::randomState(*this, getRng())))
    return failure();
  auto result = dyn_cast<RankedTensorType>(getResult().getType());
  if (result && result.hasStaticShape() && result.getElementType().isInteger(32))
    return success();
  return emitOpError() << "gives " << getResult().getType() << "; expected a static tensor of i32";
}

//===----------------------------------------------------------------------===//
// reduce
//===----------------------------------------------------------------------===//

void ReduceOp::build(OpBuilder &builder, OperationState &state, RankedTensorType suffix, Value x) {
  auto leading = llvm::seq<int64_t>(0, tensor(x).getRank() - suffix.getRank());
  build(builder, state, suffix, x, "sum", llvm::to_vector(leading));
}

LogicalResult ReduceOp::verify() {
  if (getKind() != "sum" && getKind() != "max" && getKind() != "min")
    return emitOpError() << "kind is \"" << getKind() << "\"; expected \"sum\", \"max\" or \"min\"";
  if (tensor(getX()).getElementType().isInteger(1))
    return emitOpError("x has elements of type i1; count them with ft.convert to i32 before");
  if (isFloat(getX()) ? !isFloat(getResult())
                      : getX().getType().getElementType() != getResult().getType().getElementType())
    return verify::sameElementType(*this, "the result", getResult(), "x", getX());
  llvm::ArrayRef<int64_t> dims = getDims();
  for (auto [i, dim] : llvm::enumerate(dims))
    if (dim < 0 || dim >= tensor(getX()).getRank() || (i > 0 && dim <= dims[i - 1]))
      return emitOpError() << "dims must be dimensions of x, which is " << shapeText(getX().getType())
                           << ", ascending, from 0 on; it has " << dim;
  llvm::SmallVector<int64_t> expected;
  for (auto [i, extent] : llvm::enumerate(shape(getX())))
    if (!llvm::is_contained(dims, static_cast<int64_t>(i)))
      expected.push_back(extent);
  return verify::shapeIs(*this, "the result", getResult(), expected,
                         "the dimensions of x that are not reduced");
}

Gradients ReduceOp::buildGradient(OpBuilder &builder, ValueRange resultGrads, ArrayRef<bool>, ValueRange,
                                  SmallVectorImpl<bool> &) {
  Location loc = getLoc();
  llvm::SmallVector<int64_t> ones = withOnes(*this);
  auto spread = [&](Value value) {
    return broadcastTo(builder, loc, reshapeTo(builder, loc, value, ones), getX().getType());
  };
  if (getKind() == "sum")
    return {spread(resultGrads[0])};
  Value best = EqOp::create(builder, loc, ValueRange{getX(), spread(getResult())});
  Value each = ConvertOp::create(builder, loc, getX().getType(), best);
  Value share =
      DivOp::create(builder, loc, ValueRange{resultGrads[0], sumOver(builder, loc, each, getDims())});
  Value zero = FillOp::create(builder, loc, tensor(share).clone(llvm::ArrayRef<int64_t>()),
                              builder.getF64FloatAttr(0));
  return {SelectOp::create(builder, loc, ValueRange{best, spread(share), zero})};
}

ElementRole ReduceOp::getElementRole(unsigned) {
  return getKind() == "sum" ? ElementRole::Rounded : ElementRole::Activation;
}

uint64_t ReduceOp::getFlops() { return tensor(getX()).getNumElements(); }

//===----------------------------------------------------------------------===//
// dot
//===----------------------------------------------------------------------===//

LogicalResult DotOp::verify() {
  if (failed(verify::minRank(*this, "a", getA(), 2, "[..., M, K]")) ||
      failed(verify::sameElementType(*this, "b", getB(), "a", getA())))
    return failure();
  llvm::ArrayRef<int64_t> a = shape(getA()), b = shape(getB());
  if (a.size() != b.size() || a.drop_back(2) != b.drop_back(2))
    return emitOpError()
           << "a is " << shapeText(a) << " and b is " << shapeText(b)
           << "; expected the same leading dimensions (ft.matmul takes one b for all rows of a)";
  auto [m, k] = getTransposeA() ? std::pair(a.back(), a[a.size() - 2]) : std::pair(a[a.size() - 2], a.back());
  auto [rows, n] =
      getTransposeB() ? std::pair(b.back(), b[b.size() - 2]) : std::pair(b[b.size() - 2], b.back());
  if (k != rows)
    return emitOpError() << "sums over " << k << " elements of a and " << rows << " of b; a is "
                         << shapeText(a) << ", b is " << shapeText(b);
  llvm::SmallVector<int64_t> expected(a.drop_back(2));
  expected.append({m, n});
  return verify::shapeIs(*this, "the result", getResult(), expected, "the rows of a and the columns of b");
}

// With c = op(a) op(b): d op(a) = dc op(b)^T, d op(b) = op(a)^T dc.
Gradients DotOp::buildGradient(OpBuilder &builder, ValueRange resultGrads, ArrayRef<bool> needed, ValueRange,
                               SmallVectorImpl<bool> &) {
  Value dc = resultGrads[0];
  bool ta = getTransposeA(), tb = getTransposeB();
  auto product = [&](Value like, Value a, Value b, bool transposeA, bool transposeB) -> Value {
    return DotOp::create(builder, getLoc(), like.getType(), a, b, transposeA, transposeB);
  };
  Gradients gradients(2);
  if (needed[1])
    gradients[1] = tb ? product(getB(), dc, getA(), true, ta) : product(getB(), getA(), dc, !ta, false);
  if (needed[0])
    gradients[0] = ta ? product(getA(), getB(), dc, tb, true) : product(getA(), dc, getB(), false, !tb);
  return gradients;
}

ElementRole DotOp::getElementRole(unsigned) { return ElementRole::Rounded; }

uint64_t DotOp::getFlops() {
  llvm::ArrayRef<int64_t> a = shape(getA());
  return 2 * static_cast<uint64_t>(tensor(getResult()).getNumElements() *
                                   a[a.size() - (getTransposeA() ? 2 : 1)]);
}

uint64_t DotOp::getModelFlops() { return getFlops(); }

} // namespace mlir::ft
