#include "compiler/programs/position_rows.h"

#include "compiler/programs/forward_copy.h"
#include "dialects/ft/dialect.h"
#include "dialects/ft/elementwise.h"
#include "mlir/IR/IRMapping.h"
#include "llvm/ADT/TypeSwitch.h"

#include <numeric>

namespace ft::compiler {

using namespace mlir;
using namespace mlir::ft;

namespace {

int64_t columnsOf(Value value) { return tensorTypeOf(value).getShape().back(); }
int64_t rowsOf(Value value) { return tensorTypeOf(value).getNumElements() / columnsOf(value); }

bool isElementwise(Operation *op) {
#define FT_ELEMENTWISE(Name, ...)                                                                            \
  if (isa<Name##Op>(op))                                                                                     \
    return true;
#include "runtime/base/elementwise.def"
#undef FT_ELEMENTWISE
  return isa<CopyOp, ConvertOp>(op);
}

/// An operand of an elementwise op that is the same for all rows: a scalar, or one number a column.
bool isSharedByRows(Value operand) { return tensorTypeOf(operand).getRank() < 2; }

/// Something whose rows are those of `value`, from which its own are computed one by one.
bool hasRowsOf(Value operand, Value value) {
  return tensorTypeOf(operand).getRank() > 0 &&
         tensorTypeOf(operand).getShape() == tensorTypeOf(value).getShape();
}

} // namespace

RankedTensorType RowChooser::chosenType(Value value) const {
  return tensorTypeOf(value).clone({tensorTypeOf(ids).getNumElements(), columnsOf(value)});
}

Value RowChooser::lookUp(Value value) {
  Location loc = value.getLoc();
  RankedTensorType table = tensorTypeOf(value).clone({rowsOf(value), columnsOf(value)});
  Value rows =
      table == tensorTypeOf(value) ? value : ReshapeOp::create(builder, loc, table, value).getResult();
  return EmbeddingOp::create(builder, loc, chosenType(value), ids, rows);
}

Value RowChooser::choose(Value value) {
  Value &known = chosen[value];
  if (known)
    return known;
  Operation *op = value.getDefiningOp();
  Value rows = op ? chooseFrom(op, value) : Value();
  return chosen[value] = rows ? rows : lookUp(value);
}

/// Null where only a look-up says which they are.
Value RowChooser::chooseFrom(Operation *op, Value value) {
  if (auto reshape = dyn_cast<ReshapeOp>(op)) {
    Value x = reshape.getX();
    bool keepsRows = tensorTypeOf(x).getRank() > 1 && columnsOf(x) == columnsOf(value);
    return keepsRows ? choose(x) : Value();
  }
  IRMapping operands;
  if (auto product = dyn_cast<MatmulOp>(op)) {
    if (product.getTransposeA() || product.getAcc())
      return {};
    operands.map(product.getA(), choose(product.getA()));
  } else if (isElementwise(op) && tensorTypeOf(value).getRank() > 1) {
    for (Value operand : op->getOperands())
      if (!isSharedByRows(operand) && !hasRowsOf(operand, value))
        return {};
    for (Value operand : op->getOperands())
      if (!isSharedByRows(operand))
        operands.map(operand, choose(operand));
  } else {
    return {};
  }
  Operation *copy = builder.clone(*op, operands);
  copy->getResult(0).setType(chosenType(value));
  return copy->getResult(0);
}

//===----------------------------------------------------------------------===//
// Places of ids
//===----------------------------------------------------------------------===//

namespace {

/// The place of an element in a tensor of `shape`, and the other way round.
SmallVector<int64_t> indexOf(int64_t place, ArrayRef<int64_t> shape) {
  SmallVector<int64_t> index(shape.size());
  for (size_t i = shape.size(); i-- > 0; place /= shape[i])
    index[i] = place % shape[i];
  return index;
}

/// -1 outside of it.
int64_t placeOf(ArrayRef<int64_t> index, ArrayRef<int64_t> shape) {
  int64_t place = 0;
  for (auto [at, extent] : llvm::zip_equal(index, shape)) {
    if (at < 0 || at >= extent)
      return -1;
    place = place * extent + at;
  }
  return place;
}

/// The box of `from` that begins at `sign` times `begin` has the elements of the result.
IdPlaces moved(const IdPlaces &from, Value x, Value result, ArrayRef<int64_t> begin, int64_t sign) {
  SmallVector<int64_t> source(tensorTypeOf(x).getShape()), shape(tensorTypeOf(result).getShape());
  int64_t blocks = 1;
  for (size_t i = 0; i < shape.size() && shape[i] == source[i] && begin[i] == 0; ++i)
    blocks *= shape[i];
  SmallVector<int64_t> first(begin);
  auto at = [=, from = from.at](int64_t element) {
    SmallVector<int64_t> index = indexOf(element, shape);
    for (auto [of, begun] : llvm::zip_equal(index, first))
      of += sign * begun;
    int64_t place = placeOf(index, source);
    return place < 0 ? -1 : from(place);
  };
  return {std::gcd(from.rows, blocks), at};
}

/// Ids, or in their place one value: -100 behind the end, or where something is left out.
std::optional<IdPlaces> chosenBy(SelectOp op, BlockArgument input) {
  for (auto [ids, other] : {std::pair(1, 2), std::pair(2, 1)})
    if (fillOf(op->getOperand(other)) && op->getOperand(ids).getType() == op.getResult().getType())
      return placesIn(op->getOperand(ids), input);
  return std::nullopt;
}

/// Parts side by side; one that is made of no input is padding.
std::optional<IdPlaces> joined(ConcatOp op, BlockArgument input) {
  auto axis = static_cast<int64_t>(op.getAxis());
  if (axis != -1 && axis != tensorTypeOf(op.getResult()).getRank() - 1)
    return std::nullopt;
  SmallVector<std::pair<int64_t, std::optional<IdPlaces>>> parts; // with their columns
  int64_t rows = rowsOf(op.getResult()), columns = columnsOf(op.getResult()), alike = rows, all = 0;
  for (Value part : op->getOperands()) {
    parts.emplace_back(columnsOf(part), placesIn(part, input));
    all += parts.back().first;
    if (parts.back().second)
      alike = std::gcd(alike, parts.back().second->rows);
  }
  if (all != columns || llvm::none_of(parts, [](const auto &part) { return part.second.has_value(); }))
    return std::nullopt;
  auto at = [=](int64_t element) -> int64_t {
    int64_t row = element / columns, column = element % columns;
    for (const auto &[width, places] : parts) {
      if (column < width)
        return places ? places->at(row * width + column) : -1;
      column -= width;
    }
    return -1;
  };
  return IdPlaces{alike, at};
}

} // namespace

std::optional<IdPlaces> placesIn(Value ids, BlockArgument input) {
  if (ids == input)
    return IdPlaces{std::max<int64_t>(1, tensorTypeOf(ids).getNumElements()),
                    [](int64_t element) { return element; }};
  Operation *op = ids.getDefiningOp();
  if (!op)
    return std::nullopt;
  auto of = [&](Value x) { return placesIn(x, input); };
  return llvm::TypeSwitch<Operation *, std::optional<IdPlaces>>(op)
      .Case<ReshapeOp, CopyOp, StopGradientOp>([&](auto same) { return of(same->getOperand(0)); })
      .Case([&](ConvertOp convert) {
        bool isInteger = isa<IntegerType>(tensorTypeOf(convert.getX()).getElementType());
        return isInteger ? of(convert.getX()) : std::nullopt;
      })
      .Case([&](SliceOp slice) -> std::optional<IdPlaces> {
        std::optional<IdPlaces> from = of(slice.getX());
        if (!from)
          return std::nullopt;
        return moved(*from, slice.getX(), slice.getResult(), slice.getBegin(), 1);
      })
      .Case([&](PadOp pad) -> std::optional<IdPlaces> {
        std::optional<IdPlaces> from = of(pad.getX());
        if (!from)
          return std::nullopt;
        return moved(*from, pad.getX(), pad.getResult(), pad.getLow(), -1);
      })
      .Case([&](ConcatOp concat) { return joined(concat, input); })
      .Case([&](SelectOp select) { return chosenBy(select, input); })
      .Default([](Operation *) { return std::nullopt; });
}

} // namespace ft::compiler
