#include "compiler/codegen/cluster_space.h"

#include "dialects/ft/elementwise.h"
#include "dialects/ft/verify.h"

#include <algorithm>
#include <numeric>

namespace ft::compiler {

using namespace mlir;
using mlir::ft::ReduceOp;
using mlir::ft::verify::shape;
using mlir::ft::verify::tensor;

namespace {

int64_t product(ArrayRef<int64_t> extents) {
  return std::accumulate(extents.begin(), extents.end(), int64_t{1}, std::multiplies<>());
}

} // namespace

int64_t elementsOf(Value value) { return tensor(value).getNumElements(); }

std::optional<Reduced> reducedOf(ReduceOp op) {
  ArrayRef<int64_t> dims = op.getDims(), extents = shape(op.getX());
  if (!dims.empty() && dims.back() - dims.front() + 1 != static_cast<int64_t>(dims.size()))
    return std::nullopt;
  size_t begin = dims.empty() ? 0 : static_cast<size_t>(dims.front());
  Reduced result = {begin, begin + dims.size(), 1, false};
  result.extent = product(extents.slice(result.begin, dims.size()));
  result.isLast = product(extents.drop_front(result.end)) == 1;
  return result;
}

static std::optional<OverRows> reductionOverRowsOf(Value value) {
  auto reduce = value.getDefiningOp<ReduceOp>();
  std::optional<Reduced> reduced = reduce ? reducedOf(reduce) : std::nullopt;
  if (!reduced || reduced->isLast || product(shape(reduce.getX()).take_front(reduced->begin)) != 1)
    return std::nullopt;
  return OverRows{reduce.getX(), reduce.getKind(), reduced->extent};
}

std::optional<OverRows> overRowsOf(Value value) {
  if (auto add = value.getDefiningOp<mlir::ft::AddOp>())
    for (auto [sum, acc] : {std::pair(add->getOperand(0), add->getOperand(1)),
                            std::pair(add->getOperand(1), add->getOperand(0))})
      if (std::optional<OverRows> of = reductionOverRowsOf(sum);
          of && of->kind == "sum" && isa<BlockArgument>(acc) && acc.getType() == value.getType() &&
          sum.getType() == value.getType() && isa<FloatType>(tensor(value).getElementType())) {
        of->acc = cast<BlockArgument>(acc);
        return of;
      }
  return reductionOverRowsOf(value);
}

size_t axisOf(mlir::ft::ConcatOp op) {
  auto axis = static_cast<int64_t>(op.getAxis());
  return static_cast<size_t>(axis < 0 ? axis + static_cast<int64_t>(shape(op.getResult()).size()) : axis);
}

mlir::ft::ConcatOp joinedIn(Value value) {
  bool isRounded = false;
  for (Operation *op = value.getDefiningOp(); op; op = op->getOperand(0).getDefiningOp()) {
    if (auto concat = dyn_cast<mlir::ft::ConcatOp>(op))
      return concat;
    bool rounds = isa<mlir::ft::CopyOp>(op);
    if (!isa<mlir::ft::ReshapeOp>(op) && (!rounds || isRounded))
      break;
    isRounded |= rounds;
  }
  return {};
}

IndexMap BodySpace::piece(int64_t number) const {
  SpaceDigits wide = digits;
  wide.columns *= pieces;
  IndexMap map = wide.whole();
  map.begin = number * digits.columns;
  return map;
}

bool mayBePieces(int64_t columns) {
  constexpr int64_t kMost = 4;
  return columns % ::ft::kClusterLanes == 0 && columns > ::ft::kClusterLanes &&
         columns <= kMost * ::ft::kClusterLanes;
}

std::optional<BodySpace> BodySpace::inPieces() const {
  if (!columnsAreFixed || pieces != 1 || !mayBePieces(digits.columns))
    return std::nullopt;
  BodySpace cut = *this;
  cut.pieces = digits.columns / ::ft::kClusterLanes;
  cut.digits.columns = ::ft::kClusterLanes;
  return cut;
}

// What divides the elements of all parts.
static int64_t commonElements(Value value) {
  mlir::ft::ConcatOp concat = joinedIn(value);
  int64_t common = concat ? 0 : elementsOf(value);
  if (concat)
    for (Value part : concat.getParts())
      common = std::gcd(common, commonElements(part));
  return common;
}

BodySpace firstSpaceOf(func::FuncOp function) {
  SpaceDigits space;
  auto add = [&](int64_t extent) {
    if (extent > 1)
      space.rows.push_back(extent);
  };
  for (bool last : {true, false})
    for (auto op : function.getOps<ReduceOp>()) {
      std::optional<Reduced> reduced = reducedOf(op);
      if (!reduced || reduced->isLast != last || reduced->extent == 1 || (!last && overRowsOf(op)))
        continue;
      add(product(shape(op.getX()).take_front(reduced->begin)));
      add(product(shape(op.getX()).drop_front(reduced->end)));
      space.columns = reduced->extent;
      return {space, true};
    }
  for (Value value : function.front().getTerminator()->getOperands())
    if (std::optional<OverRows> sum = overRowsOf(value); sum && sum->rows != 1) {
      add(sum->rows);
      space.columns = elementsOf(value);
      return {space, true};
    }
  for (Value value : function.front().getTerminator()->getOperands())
    space.columns = std::max(space.columns, commonElements(value));
  return {space, false};
}

} // namespace ft::compiler
