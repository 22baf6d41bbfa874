#include "compiler/codegen/space.h"

#include "compiler/codegen/elements.h"
#include "dialects/ft/verify.h"

namespace ft::compiler {
namespace {

using namespace mlir;
using mlir::ft::verify::shape;
using mlir::ft::verify::tensor;

int64_t elementsOf(Value value) { return tensor(value).getNumElements(); }

int64_t lastOf(ArrayRef<int64_t> dims) { return dims.empty() ? 1 : dims.back(); }

bool isFill(Value value) { return value.getDefiningOp<mlir::ft::FillOp>() != nullptr; }

// One by one on elements in their places.
bool isPointwise(Operation *op) {
  return elementwiseRowOf(op) || isa<mlir::ft::ConvertOp, mlir::ft::CopyOp>(op);
}

ArrayRef<int64_t> withoutLeadingOnes(ArrayRef<int64_t> dims) {
  return dims.drop_while([](int64_t extent) { return extent == 1; });
}

LogicalResult checkValue(Operation *op, Value value) {
  if (!mlir::ft::isKernelShape(value.getType()))
    return op->emitOpError() << value.getType() << " is no static tensor that a generated kernel takes";
  if (!isGeneratedElement(tensor(value).getElementType()))
    return op->emitOpError() << "elements of type " << tensor(value).getElementType()
                             << " are none that a generated kernel takes: f32, bf16, f16, i32 or i1";
  return success();
}

LogicalResult checkBody(func::FuncOp body) {
  if (!body.getBody().hasOneBlock())
    return body.emitOpError("is no cluster body: it has other than one block");
  for (Value argument : body.getArguments())
    if (failed(checkValue(body, argument)))
      return failure();
  for (Operation &op : body.front().without_terminator())
    for (Value result : op.getResults())
      if (failed(checkValue(&op, result)))
        return failure();
  return success();
}

} // namespace

std::optional<ColumnReduction> asColumnReduction(Value value) {
  auto isColumns = [](Value x, Value result) {
    return shape(x).size() > 1 && shape(result) == shape(x).take_back(1);
  };
  if (auto reduce = value.getDefiningOp<mlir::ft::ReduceOp>())
    if (isColumns(reduce.getX(), value) &&
        !llvm::is_contained(reduce.getDims(), tensor(reduce.getX()).getRank() - 1))
      return ColumnReduction{reduce.getX(), reduce.getKind()};
  return std::nullopt;
}

FailureOr<Space> Space::of(func::FuncOp body) {
  if (failed(checkBody(body)))
    return failure();
  Space space;
  Block &block = body.front();
  space.findExtents(block);
  space.rowReductions.resize(1);
  for (BlockArgument argument : block.getArguments()) {
    Layout layout = space.seed(argument);
    if (space.isOneARow(argument))
      layout = {elementsOf(argument), false};
    if (layout.rows == 0)
      return body.emitOpError() << "argument " << argument.getArgNumber() << ", " << argument.getType()
                                << ", has neither the rows nor the columns of a space of " << space.numRows
                                << " x " << space.numColumns;
    space.layouts[argument] = layout;
  }
  for (Operation &op : block.without_terminator())
    if (failed(space.place(&op)))
      return failure();
  if (failed(space.checkReturned(block.getTerminator())))
    return failure();
  space.cutFlat(block);
  return space;
}

// Those of the largest value, of the first of them.
void Space::findExtents(Block &block) {
  int64_t most = 0;
  auto consider = [&](Value value) {
    if (elementsOf(value) <= most)
      return;
    most = elementsOf(value);
    numColumns = numLastColumns = lastOf(shape(value));
    numRows = most / numColumns;
  };
  llvm::for_each(block.getArguments(), consider);
  for (Operation &op : block.without_terminator())
    llvm::for_each(op.getResults(), consider);
}

// Rows of 64 where neither rows nor columns mean anything.
void Space::cutFlat(Block &block) {
  Layout whole = {numRows, true};
  auto isFlat = [&](Value value) {
    return layout(value) == whole || (elementsOf(value) == 1 && layout(value) == Layout());
  };
  for (Operation &op : block.without_terminator())
    if (isa<mlir::ft::ReduceOp>(op) || !llvm::all_of(op.getResults(), isFlat))
      return;
  if (!llvm::all_of(block.getArguments(), isFlat))
    return;
  flat = true;
  int64_t all = numRows * numColumns;
  numColumns = kLanes;
  numRows = (all + kLanes - 1) / kLanes;
  numLastColumns = all - (numRows - 1) * kLanes;
  for (auto &entry : layouts)
    if (entry.second == whole)
      entry.second = {numRows, true};
}

// By the shape alone; 0 rows where it does not fit.
Layout Space::seed(Value value) const {
  int64_t elements = elementsOf(value);
  bool hasColumns = !shape(value).empty() && shape(value).back() == numColumns;
  Layout layout = {hasColumns ? elements / numColumns : elements, hasColumns};
  return numRows % layout.rows == 0 ? layout : Layout{0, false};
}

// Of as many rows as columns, and so [rows] or [columns]: rows where it becomes [rows, 1] later.
bool Space::isOneARow(BlockArgument argument) const {
  if (elementsOf(argument) != numRows || numColumns == 1 || lastOf(shape(argument)) != numColumns)
    return false;
  llvm::SmallVector<Value> values = {argument};
  for (size_t i = 0; i < values.size(); ++i)
    for (Operation *user : values[i].getUsers()) {
      if (isa<mlir::ft::ReshapeOp>(user) && lastOf(shape(user->getResult(0))) == 1)
        return true;
      if (isPointwise(user) && shape(user->getResult(0)) == shape(argument))
        values.push_back(user->getResult(0));
    }
  return false;
}

// Whether the value, read where `wanted` says, is what its shape says.
bool Space::fits(Value value, Layout wanted) const {
  Layout have = layout(value);
  return isFill(value) || have == wanted || (elementsOf(value) == 1 && !have.columns) ||
         (numColumns == 1 && have.rows == wanted.rows && wanted.columns);
}

LogicalResult Space::place(Operation *op) {
  if (llvm::any_of(op->getOperands(), [](Value value) { return asColumnReduction(value).has_value(); }))
    return op->emitOpError("reads a reduction over rows, which a cluster may only return");
  unsigned level = 0;
  for (Value operand : op->getOperands())
    level = std::max(level, levels.lookup(operand));
  for (Value result : op->getResults())
    levels[result] = level;
  if (isPointwise(op))
    return placeElementwise(op);
  if (isa<mlir::ft::BroadcastOp, mlir::ft::ReshapeOp>(op))
    return placeMoved(op);
  if (auto reduce = dyn_cast<mlir::ft::ReduceOp>(op); reduce && !asColumnReduction(reduce))
    return placeReduce(reduce);
  if (auto fill = dyn_cast<mlir::ft::FillOp>(op); fill && seed(fill).rows != 0) {
    layouts[fill] = seed(fill);
    return success();
  }
  if (op->getNumResults() == 1)
    if (auto reduction = asColumnReduction(op->getResult(0))) {
      if (lastOf(shape(reduction->operand)) == numColumns && fits(reduction->operand, {numRows, true}))
        return success();
      return op->emitOpError() << "reduces other than the " << numRows << " rows of " << numColumns
                               << " columns of its cluster";
    }
  return op->emitOpError("cannot be part of a generated kernel");
}

LogicalResult Space::placeElementwise(Operation *op) {
  Value result = op->getResult(0);
  std::optional<Layout> found;
  for (Value operand : op->getOperands())
    if (shape(operand) == shape(result) && !isFill(operand) && (!found || layout(operand).columns))
      found = layout(operand);
  Layout whole = found.value_or(seed(result));
  if (whole.rows == 0)
    return op->emitOpError() << "gives " << result.getType()
                             << ", which has neither the rows nor the columns of a "
                             << "space of " << numRows << " x " << numColumns;
  for (auto [index, operand] : llvm::enumerate(op->getOperands())) {
    Layout wanted = whole;
    if (shape(operand) != shape(result)) // the last dimensions
      wanted.rows = elementsOf(operand) / (whole.columns ? numColumns : 1);
    if (!fits(operand, wanted))
      return op->emitOpError() << "operand " << index << ", " << operand.getType()
                               << ", lies elsewhere in the space of rows and columns than the result";
  }
  layouts[result] = whole;
  return success();
}

LogicalResult Space::placeMoved(Operation *op) {
  Value x = op->getOperand(0), result = op->getResult(0);
  ArrayRef<int64_t> from = shape(x), to = shape(result);
  if (isa<mlir::ft::ReshapeOp>(op)) {
    if (layout(x).columns && lastOf(to) != numColumns && elementsOf(x) != 1)
      return op->emitOpError() << "makes rows other than those of " << numColumns
                               << " columns of its cluster";
    layouts[result] = layout(x);
    return success();
  }
  Layout whole = seed(result);
  // Either all columns or one for them; rows are repeated from the front alone.
  bool spread = whole.columns && lastOf(from) == 1 && numColumns != 1;
  ArrayRef<int64_t> rows = withoutLeadingOnes(spread && !from.empty() ? from.drop_back() : from);
  ArrayRef<int64_t> ofRows = spread ? to.drop_back() : to;
  bool isSuffix = rows.size() <= ofRows.size() && ofRows.take_back(rows.size()) == rows;
  bool hasColumns = whole.columns && !spread;
  Layout wanted = {elementsOf(x) / (hasColumns ? numColumns : 1), hasColumns};
  if (whole.rows == 0 || (elementsOf(x) != 1 && (!isSuffix || !fits(x, wanted))))
    return op->emitOpError("repeats other than rows, columns or one number of its cluster");
  layouts[result] = whole;
  return success();
}

LogicalResult Space::placeReduce(mlir::ft::ReduceOp op) {
  Layout from = layout(op.getX());
  bool overLast = op.getDims().size() == 1 && op.getDims()[0] == tensor(op.getX()).getRank() - 1;
  if (!overLast || !from.columns || lastOf(shape(op.getX())) != numColumns)
    return op.emitOpError() << "reduces other than the columns or all of the rows of a space of " << numRows
                            << " x " << numColumns;
  unsigned level = levels.lookup(op.getX());
  rowReductions.resize(std::max<size_t>(rowReductions.size(), level + 2));
  rowReductions[level].push_back(op);
  levels[op] = level + 1;
  layouts[op] = {from.rows, false};
  return success();
}

LogicalResult Space::checkReturned(Operation *op) const {
  if (op->getNumOperands() == 0)
    return op->emitOpError("returns nothing: a kernel would have no result");
  for (auto [index, value] : llvm::enumerate(op->getOperands()))
    if (!asColumnReduction(value) && layout(value).rows != numRows)
      return op->emitOpError() << "result " << index << ", " << value.getType()
                               << ", is the same in several of the " << numRows << " rows of the cluster";
  return success();
}

int64_t Space::blockRows() const {
  constexpr int64_t kBlocks = 64, kFewest = 16;
  return std::max(kFewest, (numRows + kBlocks - 1) / kBlocks);
}

} // namespace ft::compiler
