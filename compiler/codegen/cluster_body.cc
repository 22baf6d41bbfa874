#include "compiler/codegen/cluster_body.h"

#include "compiler/codegen/body_maker.h"
#include "compiler/codegen/cluster_space.h"
#include "compiler/codegen/elements.h"
#include "compiler/codegen/index_map.h"
#include "compiler/codegen/reduction.h"
#include "dialects/ft/elementwise.h"
#include "dialects/ft/verify.h"

namespace ft::compiler {
namespace {

using namespace mlir;
using mlir::ft::ReduceOp;
using mlir::ft::verify::shape;

class Analysis {
public:
  Analysis(func::FuncOp function, BodySpace space)
      : function(function), space(std::move(space)), digits(this->space.digits) {}

  /// Fails, with an error or, where another space may do better, without.
  FailureOr<ClusterBody> run() {
    ClusterBody &body = maker.body;
    body.rows = digits.numRows();
    body.columns = body.last_columns = digits.columns;
    for (BlockArgument argument : function.getArguments())
      body.inputs.push_back({dtypeOf(argument),
                             isRandomState(argument) ? kRandomStateNumbers : elementsOf(argument),
                             isRandomState(argument)});
    for (Value value : function.front().getTerminator()->getOperands())
      if (failed(addResult(value)))
        return failure();
    return maker.take();
  }

  std::optional<BodySpace> better; // to try next

private:
  static bool isRandomState(BlockArgument argument) {
    return !argument.use_empty() && llvm::all_of(argument.getUsers(), [](Operation *user) {
      return isa<mlir::ft::RandomBitsOp>(user);
    });
  }

  int64_t rows() const { return maker.body.rows; }

  LogicalResult addResult(Value value) {
    auto result = static_cast<uint32_t>(maker.body.results.size());
    maker.body.results.push_back({dtypeOf(value), elementsOf(value)});
    if (joinedIn(value))
      return addParts(value, result);
    if (std::optional<OverRows> sum = overRowsOf(value);
        sum && sum->rows == rows() && rows() != 1 && elementsOf(value) == digits.columns * space.pieces)
      return addOverRows(*sum, result);
    return addOutput(value, result);
  }

  // Maps of the pieces of what has `elements`; none where that is no number of them.
  SmallVector<IndexMap> piecesOf(int64_t elements) const {
    if (elements == space.elements())
      return {digits.whole()};
    if (elements != space.elements() * space.pieces)
      return {};
    return llvm::map_to_vector(llvm::seq(space.pieces), [&](int64_t i) { return space.piece(i); });
  }

  LogicalResult addOverRows(const OverRows &sum, uint32_t result) {
    for (const IndexMap &map : piecesOf(elementsOf(sum.x))) {
      FailureOr<uint32_t> operand = valueAt(sum.x, map);
      if (failed(operand))
        return failure();
      maker.body.outputs.push_back({*operand,
                                    result,
                                    {.begin = map.begin, .column_stride = 1},
                                    true,
                                    reductionKindOf(sum.kind),
                                    sum.acc ? int64_t{sum.acc.getArgNumber()} : -1});
    }
    return success();
  }

  // One element for each place, or one for each row.
  LogicalResult addOutput(Value value, uint32_t result) {
    SmallVector<IndexMap> maps = piecesOf(elementsOf(value));
    if (maps.empty() && elementsOf(value) == rows())
      maps = {digits.oneARow()};
    if (maps.empty()) {
      int64_t all = space.elements(), columns = all / elementsOf(value);
      if (!space.columnsAreFixed && columns > 1 && columns < digits.columns && all % elementsOf(value) == 0 &&
          digits.columns % columns == 0)
        return cutColumns(columns); // then it is one a row
      return refuse(value, "has neither an element for each place nor one for each row of the ");
    }
    for (const IndexMap &map : maps) {
      FailureOr<uint32_t> number = valueAt(value, map);
      if (failed(number))
        return failure();
      maker.body.outputs.push_back({*number, result, digits.placeOf(map)});
    }
    return success();
  }

  // What is as large as the space, of a value: where in that it is, and where it lies in a result.
  struct Part {
    Value value;
    IndexMap from, to;
  };

  LogicalResult addParts(Value value, uint32_t result) {
    FailureOr<SmallVector<Part>> parts = partsOf(value, std::nullopt);
    if (failed(parts))
      return failure();
    for (const Part &part : *parts) {
      FailureOr<uint32_t> number = valueAt(part.value, part.from);
      if (failed(number))
        return failure();
      *number = maker.convertedTo(maker.body.results[result].dtype, *number);
      maker.body.outputs.push_back({*number, result, digits.placeOf(part.to)});
    }
    return success();
  }

  // Parts that lie side by side along `axis` may be cut along it. What is rounded on the way is one part.
  FailureOr<SmallVector<Part>> partsOf(Value value, std::optional<size_t> axis) {
    mlir::ft::ConcatOp concat = joinedIn(value);
    if (!concat || (axis && dtypeOf(concat) != dtypeOf(value)))
      return cutParts(value, axis);
    SmallVector<Part> all;
    int64_t begin = 0;
    for (Value part : concat.getParts()) {
      size_t along = axisOf(concat);
      FailureOr<SmallVector<Part>> cut = partsOf(part, along);
      if (failed(cut))
        return failure();
      for (Part &one : *cut) {
        FailureOr<DimensionMap> dimensions = dimensionsAt(part, one.to);
        if (failed(dimensions))
          return failure();
        dimensions->begins[along] += begin;
        one.to = linear(*dimensions, stridesOf(shape(concat.getResult())));
      }
      llvm::append_range(all, *cut);
      begin += shape(part)[along];
    }
    return all;
  }

  FailureOr<SmallVector<Part>> cutParts(Value value, std::optional<size_t> axis) {
    int64_t elements = elementsOf(value), wide = space.elements() * space.pieces;
    int64_t each = elements % wide == 0 ? wide : space.elements(), count = elements / each;
    SmallVector<int64_t> extents(shape(value));
    int64_t along = axis ? extents[*axis] : 1;
    if (elements % each != 0 || along % count != 0 || count > static_cast<int64_t>(kMaxClusterOutputs))
      return refuse(value, "is side by side with others and not so many times as large as the ");
    if (axis)
      extents[*axis] /= count;
    SmallVector<Part> parts;
    for (int64_t i = 0; i < count; ++i)
      for (const IndexMap &map : piecesOf(each)) {
        FailureOr<DimensionMap> dimensions = dimensionsIn(value, extents, map);
        if (failed(dimensions))
          return failure();
        if (axis)
          dimensions->begins[*axis] += i * extents[*axis];
        IndexMap at = linear(*dimensions, stridesOf(shape(value)));
        parts.push_back({value, at, at});
      }
    return parts;
  }

  LogicalResult refuse(Value value, StringRef why) {
    better = space.inPieces();
    if (better)
      return failure();
    Operation *op = value.getDefiningOp() ? value.getDefiningOp() : function.getOperation();
    return op->emitOpError() << why << "space of " << rows() << " rows and " << digits.columns
                             << " columns of its cluster";
  }

  LogicalResult cutColumns(int64_t by) {
    better = space;
    better->digits.columns = by;
    better->digits.rows.push_back(digits.columns / by);
    return failure();
  }

  FailureOr<DimensionMap> dimensionsAt(Value value, const IndexMap &map) {
    return dimensionsIn(value, shape(value), map);
  }

  // Of a tensor of this shape that is `value`, or a part of it.
  FailureOr<DimensionMap> dimensionsIn(Value value, ArrayRef<int64_t> extents, const IndexMap &map) {
    auto found = dimensionsOf(map, digits, extents);
    if (auto *dimensions = std::get_if<DimensionMap>(&found))
      return std::move(*dimensions);
    Cut cut = std::get<Cut>(found);
    int64_t extent = digits.extent(cut.digit);
    bool isColumns = cut.digit == digits.rows.size();
    if (cut.by <= 1 || extent % cut.by != 0 || cut.by == extent || (isColumns && space.columnsAreFixed))
      return refuse(value, "lies across the rows of the ");
    if (isColumns)
      return cutColumns(cut.by);
    better = space;
    better->digits.rows[cut.digit] = cut.by;
    better->digits.rows.insert(better->digits.rows.begin() + cut.digit, extent / cut.by);
    return failure();
  }

  FailureOr<uint32_t> valueAt(Value value, const IndexMap &map) {
    for (auto &[known, number] : numbers[value])
      if (known == map)
        return number;
    FailureOr<uint32_t> number = makeAt(value, map);
    if (succeeded(number))
      numbers[value].push_back({map, *number});
    return number;
  }

  FailureOr<uint32_t> makeAt(Value value, const IndexMap &map) {
    Operation *op = value.getDefiningOp();
    if (!op)
      return maker.read(cast<BlockArgument>(value).getArgNumber(), digits.placeOf(map));
    if (isa<mlir::ft::ReshapeOp>(op))
      return valueAt(op->getOperand(0), map);
    if (isa<mlir::ft::BroadcastOp>(op))
      return repeatedAt(op->getOperand(0), value, map);
    if (auto slice = dyn_cast<mlir::ft::SliceOp>(op))
      return slicedAt(slice, map);
    if (auto concat = dyn_cast<mlir::ft::ConcatOp>(op))
      return joinedAt(concat, map);
    if (auto transpose = dyn_cast<mlir::ft::TransposeOp>(op))
      return transposedAt(transpose, map);
    if (auto reduce = dyn_cast<ReduceOp>(op))
      return reducedAt(reduce, map);
    return computedAt(op, map);
  }

  // An operand that has the last dimensions of `value`, or one element for some.
  FailureOr<uint32_t> repeatedAt(Value operand, Value value, const IndexMap &map) {
    if (shape(operand) == shape(value))
      return valueAt(operand, map);
    FailureOr<DimensionMap> dimensions = dimensionsAt(value, map);
    if (failed(dimensions))
      return failure();
    llvm::SmallVector<int64_t> strides = stridesOf(shape(operand));
    for (auto [extent, stride] : llvm::zip_equal(shape(operand), strides))
      stride = extent == 1 ? 0 : stride;
    strides.insert(strides.begin(), shape(value).size() - strides.size(), 0);
    return valueAt(operand, linear(*dimensions, strides));
  }

  FailureOr<uint32_t> slicedAt(mlir::ft::SliceOp op, const IndexMap &map) {
    FailureOr<DimensionMap> dimensions = dimensionsAt(op, map);
    if (failed(dimensions))
      return failure();
    for (auto [begin, more] : llvm::zip_equal(dimensions->begins, op.getBegin()))
      begin += more;
    return valueAt(op.getX(), linear(*dimensions, stridesOf(shape(op.getX()))));
  }

  // What lies within one part is read there.
  FailureOr<uint32_t> joinedAt(mlir::ft::ConcatOp op, const IndexMap &map) {
    FailureOr<DimensionMap> dimensions = dimensionsAt(op, map);
    if (failed(dimensions))
      return failure();
    size_t axis = axisOf(op);
    int64_t last = dimensions->begins[axis];
    for (auto [digit, moved] : llvm::enumerate(dimensions->digits))
      if (moved.first == axis)
        last += moved.second * (digits.extent(digit) - 1);
    int64_t begin = 0;
    for (Value part : op.getParts()) {
      int64_t end = begin + shape(part)[axis];
      if (dimensions->begins[axis] >= begin && last < end) {
        dimensions->begins[axis] -= begin;
        return valueAt(part, linear(*dimensions, stridesOf(shape(part))));
      }
      begin = end;
    }
    return refuse(op, "has parts that end within the ");
  }

  FailureOr<uint32_t> transposedAt(mlir::ft::TransposeOp op, const IndexMap &map) {
    FailureOr<DimensionMap> dimensions = dimensionsAt(op, map);
    if (failed(dimensions))
      return failure();
    llvm::SmallVector<int64_t> from = stridesOf(shape(op.getX())), strides;
    for (int64_t dimension : op.getPermutation())
      strides.push_back(from[dimension]);
    return valueAt(op.getX(), linear(*dimensions, strides));
  }

  FailureOr<uint32_t> reducedAt(ReduceOp op, const IndexMap &map) {
    std::optional<Reduced> reduced = reducedOf(op);
    if (!reduced)
      return op.emitOpError("reduces dimensions that are not beside each other");
    if (reduced->extent == 1) { // nothing to add
      FailureOr<uint32_t> x = valueAt(op.getX(), map);
      return succeeded(x) ? FailureOr<uint32_t>(maker.convertedTo(dtypeOf(op), *x)) : x;
    }
    if (map.ofColumns() != 0 || reduced->extent != digits.columns * space.pieces)
      return refuse(op, "reduces other than the columns of the ");
    FailureOr<DimensionMap> dimensions = dimensionsAt(op, map);
    if (failed(dimensions))
      return failure();
    llvm::SmallVector<int64_t> strides = stridesOf(shape(op.getX())), kept;
    for (auto [dimension, stride] : llvm::enumerate(strides))
      if (dimension < reduced->begin || dimension >= reduced->end)
        kept.push_back(stride);
    IndexMap ofOperand = linear(*dimensions, kept);
    ofOperand.strides.back() = strides[reduced->end - 1];
    SmallVector<uint32_t> pieces;
    for (int64_t i = 0; i < space.pieces; ++i) {
      FailureOr<uint32_t> x = valueAt(op.getX(), ofOperand);
      if (failed(x))
        return failure();
      pieces.push_back(*x);
      ofOperand.begin += digits.columns * ofOperand.ofColumns();
    }
    return maker.reduced(reductionKindOf(op.getKind()), pieces, dtypeOf(op));
  }

  FailureOr<uint32_t> computedAt(Operation *op, const IndexMap &map) {
    Value result = op->getResult(0);
    if (auto fill = dyn_cast<mlir::ft::FillOp>(op))
      return maker.fill(fill.getValue().convertToDouble(), dtypeOf(result));
    if (isa<mlir::ft::IotaOp>(op))
      return maker.iota(elementsOf(result), digits.placeOf(map));
    if (auto bits = dyn_cast<mlir::ft::RandomBitsOp>(op)) {
      auto state = dyn_cast<BlockArgument>(bits.getRng());
      if (!state || !isRandomState(state))
        return op->emitOpError("draws from a value of its cluster");
      return maker.randomBits(state.getArgNumber(), static_cast<uint32_t>(bits.getStream()),
                              elementsOf(result), digits.placeOf(map));
    }
    if (!elementwiseRowOf(op) && !isa<mlir::ft::ConvertOp, mlir::ft::CopyOp>(op))
      return op->emitOpError("cannot be part of a generated kernel");
    SmallVector<uint32_t> operands;
    for (Value operand : op->getOperands()) {
      FailureOr<uint32_t> number = repeatedAt(operand, result, map);
      if (failed(number))
        return failure();
      operands.push_back(*number);
    }
    return maker.computed(op, operands);
  }

  func::FuncOp function;
  BodySpace space;
  const SpaceDigits &digits;
  BodyMaker maker;
  llvm::DenseMap<Value, llvm::SmallVector<std::pair<IndexMap, uint32_t>, 1>> numbers;
};

LogicalResult checkValues(func::FuncOp function) {
  if (!function.getBody().hasOneBlock() || function.front().getTerminator()->getNumOperands() == 0)
    return function.emitOpError("is no body of a cluster: it has other than one block, or returns nothing");
  auto check = [&](Operation *op, TypeRange types) -> LogicalResult {
    for (Type type : types) {
      if (!mlir::ft::isKernelShape(type))
        return op->emitOpError() << type << " is no static tensor that a generated kernel takes";
      if (!isGeneratedElement(cast<RankedTensorType>(type).getElementType()))
        return op->emitOpError() << "elements of type " << cast<RankedTensorType>(type).getElementType()
                                 << " are none that a generated kernel takes: f32, bf16, f16, i32, i64 or i1";
    }
    return success();
  };
  if (failed(check(function, function.getArgumentTypes())))
    return failure();
  for (Operation &op : function.front().without_terminator())
    if (failed(check(&op, op.getResultTypes())))
      return failure();
  return success();
}

} // namespace

FailureOr<ClusterBody> clusterBodyOf(func::FuncOp function) {
  if (failed(checkValues(function)))
    return failure();
  BodySpace space = firstSpaceOf(function);
  for (;;) {
    Analysis analysis(function, space);
    FailureOr<ClusterBody> body = analysis.run();
    if (failed(body) && analysis.better) {
      space = *std::move(analysis.better);
      continue;
    }
    if (failed(body))
      return failure();
    if (absl::Status status = CheckClusterBody(*body); !status.ok())
      return function.emitError() << "is no body of a cluster: " << std::string(status.message());
    return body;
  }
}

} // namespace ft::compiler
