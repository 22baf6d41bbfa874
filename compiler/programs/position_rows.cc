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

using Places = std::vector<int64_t>;

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
Places moved(const Places &from, Value x, Value result, ArrayRef<int64_t> begin, int64_t sign) {
  Places places;
  ArrayRef<int64_t> shape = tensorTypeOf(result).getShape();
  for (int64_t i = 0; i < tensorTypeOf(result).getNumElements(); ++i) {
    SmallVector<int64_t> index = indexOf(i, shape);
    for (auto [at, first] : llvm::zip_equal(index, begin))
      at += sign * first;
    int64_t place = placeOf(index, tensorTypeOf(x).getShape());
    places.push_back(place < 0 ? -1 : from[place]);
  }
  return places;
}

/// One value everywhere.
bool isFilled(Value value) {
  Operation *op = value.getDefiningOp();
  if (isa_and_present<ConvertOp, CopyOp, BroadcastOp, ReshapeOp>(op))
    return isFilled(op->getOperand(0));
  return isa_and_present<FillOp>(op);
}

/// Ids, or in their place one value: -100 behind the end, or where something is left out.
std::optional<Places> chosenBy(SelectOp op, BlockArgument input) {
  for (auto [ids, other] : {std::pair(1, 2), std::pair(2, 1)})
    if (isFilled(op->getOperand(other)) && op->getOperand(ids).getType() == op.getResult().getType())
      return placesIn(op->getOperand(ids), input);
  return std::nullopt;
}

/// Parts side by side; one that is made of no input is padding.
std::optional<Places> joined(ConcatOp op, BlockArgument input) {
  auto axis = static_cast<int64_t>(op.getAxis());
  if (axis != -1 && axis != tensorTypeOf(op.getResult()).getRank() - 1)
    return std::nullopt;
  SmallVector<std::optional<Places>> parts;
  for (Value part : op->getOperands())
    parts.push_back(placesIn(part, input));
  if (llvm::none_of(parts, [](const auto &part) { return part.has_value(); }))
    return std::nullopt;
  Places places;
  int64_t columns = columnsOf(op.getResult());
  for (int64_t row = 0; row < rowsOf(op.getResult()); ++row)
    for (auto [part, operand] : llvm::zip_equal(parts, op->getOperands())) {
      int64_t width = columnsOf(operand);
      for (int64_t i = 0; i < width; ++i)
        places.push_back(part ? (*part)[row * width + i] : -1);
    }
  return static_cast<int64_t>(places.size()) == rowsOf(op.getResult()) * columns
             ? std::optional<Places>(std::move(places))
             : std::nullopt;
}

} // namespace

std::optional<Places> placesIn(Value ids, BlockArgument input) {
  if (ids == input) {
    Places places(tensorTypeOf(ids).getNumElements());
    std::iota(places.begin(), places.end(), 0);
    return places;
  }
  Operation *op = ids.getDefiningOp();
  if (!op)
    return std::nullopt;
  auto of = [&](Value x) { return placesIn(x, input); };
  return llvm::TypeSwitch<Operation *, std::optional<Places>>(op)
      .Case<ReshapeOp, CopyOp, StopGradientOp>([&](auto same) { return of(same->getOperand(0)); })
      .Case([&](ConvertOp convert) {
        bool isInteger = isa<IntegerType>(tensorTypeOf(convert.getX()).getElementType());
        return isInteger ? of(convert.getX()) : std::nullopt;
      })
      .Case([&](SliceOp slice) -> std::optional<Places> {
        std::optional<Places> from = of(slice.getX());
        if (!from)
          return std::nullopt;
        return moved(*from, slice.getX(), slice.getResult(), slice.getBegin(), 1);
      })
      .Case([&](PadOp pad) -> std::optional<Places> {
        std::optional<Places> from = of(pad.getX());
        if (!from)
          return std::nullopt;
        return moved(*from, pad.getX(), pad.getResult(), pad.getLow(), -1);
      })
      .Case([&](ConcatOp concat) { return joined(concat, input); })
      .Case([&](SelectOp select) { return chosenBy(select, input); })
      .Default([](Operation *) { return std::nullopt; });
}

} // namespace ft::compiler
