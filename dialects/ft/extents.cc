// Which extents of an op's operands and results are one number.
#include "dialects/ft/extents.h"

#include "dialects/ft/verify.h"

namespace mlir::ft {
namespace {

int64_t rankOf(Value value) { return verify::tensor(value).getRank(); }

void alignTrailing(Value a, Value b, ExtentRelations &relations) {
  for (int64_t i = 1; i <= std::min(rankOf(a), rankOf(b)); ++i)
    relations.same({a, rankOf(a) - i}, {b, rankOf(b) - i});
}

// Of two tensors of one rank, `part` lies in `whole`: a dimension that it has wholly is the same.
void alignBox(Value part, Value whole, ExtentRelations &relations) {
  for (int64_t i = 0; i < rankOf(whole); ++i) {
    if (verify::shape(part)[i] == verify::shape(whole)[i]) {
      relations.same({part, i}, {whole, i});
      continue;
    }
    relations.fixed({part, i});
    relations.fixed({whole, i});
  }
}

// Elements of x, of which those of the last dimension are chosen by ids of another number.
void alignRows(Value x, Value ids, ExtentRelations &relations) {
  alignLeading(x, ids, rankOf(x) - 1, relations);
}

// Of the dimensions [from, end) of a reshape's operand or result, the first is what the others are cut from.
void fixOthers(Value value, int64_t from, int64_t end, ExtentRelations &relations) {
  for (int64_t i = from + 1; i < end; ++i)
    relations.fixed({value, i});
}

} // namespace

void alignLeading(Value a, Value b, int64_t count, ExtentRelations &relations) {
  for (int64_t i = 0; i < count; ++i)
    relations.same({a, i}, {b, i});
}

void alignOperands(Operation *op, ExtentRelations &relations) {
  if (op->getNumResults() == 0)
    return;
  Value result = op->getResult(0);
  for (Value operand : op->getOperands()) {
    // The state of random numbers has nothing to do with what is drawn.
    if (operand.getDefiningOp<InputOp>() || !isa<RankedTensorType>(operand.getType()))
      continue;
    llvm::ArrayRef<int64_t> of = verify::shape(operand), all = verify::shape(result);
    if (of.size() <= all.size() && of == all.take_back(of.size()))
      alignTrailing(operand, result, relations);
  }
}

void GetOp::relateExtents(ExtentRelations &relations) {
  for (int64_t i = 0; i < rankOf(getValue()); ++i)
    relations.fixed({getValue(), i});
}

void BroadcastOp::relateExtents(ExtentRelations &relations) {
  Value x = getX(), result = getResult();
  for (int64_t i = 1; i <= rankOf(x); ++i) {
    Dimension from{x, rankOf(x) - i}, to{result, rankOf(result) - i};
    if (verify::shape(x)[from.dim] == 1)
      relations.follows(from, to);
    else
      relations.same(from, to);
  }
}

// Runs of dimensions with the same product are the same elements. Of what a run is cut into, or joined from,
// the first dimension is the outer one: only that can grow without elements changing places. Of an extent of
// 1 between others that one side lacks nobody knows which of its neighbours it is joined with.
void ReshapeOp::relateExtents(ExtentRelations &relations) {
  llvm::ArrayRef<int64_t> from = verify::shape(getX()), to = verify::shape(getResult());
  size_t i = 0, j = 0;
  auto skipOnes = [&](Value value, llvm::ArrayRef<int64_t> extents, size_t &at) {
    for (; !relations.onesMayChange() && at < extents.size() && extents[at] == 1; ++at)
      relations.fixed({value, static_cast<int64_t>(at)});
    return at < extents.size();
  };
  auto fixOnes = [&](Value value, llvm::ArrayRef<int64_t> extents, size_t &at, bool otherHasOne) {
    for (; !otherHasOne && at < extents.size() && extents[at] == 1; ++at)
      relations.fixed({value, static_cast<int64_t>(at)});
  };
  while (skipOnes(getX(), from, i) && skipOnes(getResult(), to, j)) {
    if (i > 0) {
      fixOnes(getX(), from, i, to[j] == 1);
      fixOnes(getResult(), to, j, i < from.size() && from[i] == 1);
      if (i == from.size() || j == to.size())
        break;
    }
    size_t firstFrom = i, firstTo = j;
    int64_t left = from[i++], right = to[j++];
    while (left != right) {
      if (left < right)
        left *= from[i++];
      else
        right *= to[j++];
    }
    relations.same({getX(), static_cast<int64_t>(firstFrom)}, {getResult(), static_cast<int64_t>(firstTo)});
    fixOthers(getX(), static_cast<int64_t>(firstFrom), static_cast<int64_t>(i), relations);
    fixOthers(getResult(), static_cast<int64_t>(firstTo), static_cast<int64_t>(j), relations);
  }
  skipOnes(getResult(), to, j);
  fixOthers(getX(), static_cast<int64_t>(i) - 1, static_cast<int64_t>(from.size()), relations);
  fixOthers(getResult(), static_cast<int64_t>(j) - 1, static_cast<int64_t>(to.size()), relations);
}

void TransposeOp::relateExtents(ExtentRelations &relations) {
  for (auto [to, from] : llvm::enumerate(getPermutation()))
    relations.same({getX(), from}, {getResult(), static_cast<int64_t>(to)});
}

void SliceOp::relateExtents(ExtentRelations &relations) { alignBox(getResult(), getX(), relations); }

void PadOp::relateExtents(ExtentRelations &relations) { alignBox(getX(), getResult(), relations); }

void ReduceOp::relateExtents(ExtentRelations &relations) {
  int64_t to = 0;
  for (int64_t from = 0; from < rankOf(getX()); ++from)
    if (!llvm::is_contained(getDims(), from))
      relations.same({getX(), from}, {getResult(), to++});
}

void DotOp::relateExtents(ExtentRelations &relations) {
  int64_t leading = rankOf(getA()) - 2;
  alignLeading(getA(), getB(), leading, relations);
  alignLeading(getA(), getResult(), leading, relations);
  bool ta = getTransposeA(), tb = getTransposeB();
  relations.same({getA(), leading + (ta ? 0 : 1)}, {getB(), leading + (tb ? 1 : 0)});
  relations.same({getA(), leading + (ta ? 1 : 0)}, {getResult(), leading});
  relations.same({getB(), leading + (tb ? 0 : 1)}, {getResult(), leading + 1});
}

void MatmulOp::relateExtents(ExtentRelations &relations) {
  Value a = getA(), b = getB(), result = getResult();
  if (getTransposeA()) {
    alignLeading(a, b, rankOf(a) - 1, relations);
    relations.same({a, rankOf(a) - 1}, {result, 0});
    relations.same({b, rankOf(b) - 1}, {result, 1});
  } else {
    alignLeading(a, result, rankOf(a) - 1, relations);
    relations.same({a, rankOf(a) - 1}, {b, getTransposeB() ? 1 : 0});
    relations.same({b, getTransposeB() ? 0 : 1}, {result, rankOf(result) - 1});
  }
  if (getAcc())
    alignTrailing(getAcc(), result, relations);
}

void EmbeddingOp::relateExtents(ExtentRelations &relations) {
  alignLeading(getIds(), getResult(), rankOf(getIds()), relations);
  relations.same({getTable(), 1}, {getResult(), rankOf(getResult()) - 1});
}

static void relateAttention(llvm::ArrayRef<Value> sequences, Value lse, Value lengths, Value segments,
                            ExtentRelations &relations) {
  Value first = sequences[0];
  for (Value other : sequences.drop_front())
    alignLeading(first, other, 2, relations);
  relations.same({first, 0}, {lse, 0});
  relations.same({first, 1}, {lse, 2});
  if (lengths)
    relations.same({first, 0}, {lengths, 0});
  if (segments)
    alignLeading(first, segments, 2, relations);
}

void AttentionOp::relateExtents(ExtentRelations &relations) {
  relateAttention({getQ(), getK(), getV(), getOut()}, getLse(), getLengths(), getSegments(), relations);
  relations.same({getQ(), 2}, {getOut(), 2});
  for (Value x : {getQ(), getK(), getV()})
    relations.fixed({x, 2});
}

void QkvAttentionOp::relateExtents(ExtentRelations &relations) {
  relateAttention({getQkv(), getOut()}, getLse(), getLengths(), getSegments(), relations);
  relations.fixed({getQkv(), 2});
}

void SplitOp::relateExtents(ExtentRelations &relations) {
  for (Value part : getParts())
    alignBox(part, getX(), relations);
}

void ConcatOp::relateExtents(ExtentRelations &relations) {
  for (Value part : getParts())
    alignBox(part, getResult(), relations);
}

void GatherElementsOp::relateExtents(ExtentRelations &relations) {
  alignRows(getX(), getIds(), relations);
  alignLeading(getIds(), getResult(), rankOf(getIds()), relations);
}

void ScatterAddElementsOp::relateExtents(ExtentRelations &relations) {
  alignLeading(getX(), getIds(), rankOf(getX()), relations);
  alignRows(getResult(), getX(), relations);
}

// All of a row in order; of the first of it there are as many as was asked for.
void ArgsortOp::relateExtents(ExtentRelations &relations) {
  int64_t last = rankOf(getX()) - 1;
  alignRows(getX(), getResult(), relations);
  if (verify::shape(getX())[last] == verify::shape(getResult())[last])
    relations.same({getX(), last}, {getResult(), last});
  else
    relations.fixed({getResult(), last});
}

void GroupedDotOp::relateExtents(ExtentRelations &relations) {
  relations.same({getX(), 0}, {getResult(), 0});
  relations.same({getW(), 0}, {getEnds(), 0});
  relations.same({getX(), 1}, {getW(), getTransposeB() ? 2 : 1});
  relations.same({getW(), getTransposeB() ? 1 : 2}, {getResult(), 1});
}

void CrossEntropyOp::relateExtents(ExtentRelations &relations) {
  alignRows(getLogits(), getTargets(), relations);
}

void LinearCrossEntropyOp::relateExtents(ExtentRelations &relations) {
  alignRows(getX(), getTargets(), relations);
  relations.same({getX(), rankOf(getX()) - 1}, {getWeight(), 1});
}

void SampleBitsOp::relateExtents(ExtentRelations &relations) {
  alignLeading(getLogits(), getIndex(), rankOf(getIndex()), relations);
}

void BinaryMapperOp::relateExtents(ExtentRelations &relations) {
  alignLeading(getLogits(), getIndex(), rankOf(getIndex()), relations);
  alignLeading(getIndex(), getResult(), rankOf(getIndex()), relations);
  relations.same({getTable(), 1}, {getResult(), rankOf(getResult()) - 1});
}

void RotateOp::relateExtents(ExtentRelations &relations) {
  alignLeading(getX(), getResult(), 3, relations);
  for (Value angles : {getCosine(), getSine()}) {
    bool ofExamples = rankOf(angles) == 3;
    relations.same({getX(), 1}, {angles, ofExamples ? 1 : 0});
    if (ofExamples)
      relations.same({getX(), 0}, {angles, 0});
  }
}

} // namespace mlir::ft
