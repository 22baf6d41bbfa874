#include "compiler/codegen/cluster_body.h"

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
using Op = ClusterBody::Op;

// Numbers of ops until reads, which come first, are all known.
constexpr uint32_t kOps = 1U << 16;

class Analysis {
public:
  Analysis(func::FuncOp function, SpaceDigits space, bool columnsAreFixed)
      : function(function), space(std::move(space)), columnsAreFixed(columnsAreFixed) {}

  /// Fails, with an error or, where other digits may do better, without.
  FailureOr<ClusterBody> run() {
    body.rows = space.numRows();
    body.columns = body.last_columns = space.columns;
    for (BlockArgument argument : function.getArguments())
      body.inputs.push_back({dtypeOf(argument),
                             isRandomState(argument) ? kRandomStateNumbers : elementsOf(argument),
                             isRandomState(argument)});
    for (Value value : function.front().getTerminator()->getOperands())
      if (failed(addResult(value)))
        return failure();
    for (Op &op : body.ops)
      for (uint32_t &operand : op.operands)
        operand = op.kind == Op::Kind::kRandomBits ? operand : final(operand);
    for (ClusterBody::Output &output : body.outputs)
      output.value = final(output.value);
    return std::move(body);
  }

  std::optional<SpaceDigits> better; // digits to try next

private:
  uint32_t final(uint32_t number) const {
    return number < kOps ? number : number - kOps + static_cast<uint32_t>(body.reads.size());
  }

  static bool isRandomState(BlockArgument argument) {
    return !argument.use_empty() && llvm::all_of(argument.getUsers(), [](Operation *user) {
      return isa<mlir::ft::RandomBitsOp>(user);
    });
  }

  LogicalResult addResult(Value value) {
    auto result = static_cast<uint32_t>(body.results.size());
    body.results.push_back({dtypeOf(value), elementsOf(value)});
    if (auto concat = joinedIn(value))
      return addParts(concat, result);
    if (std::optional<OverRows> sum = overRowsOf(value);
        sum && sum->rows == body.rows && elementsOf(value) == body.columns && body.rows != 1) {
      FailureOr<uint32_t> operand = valueAt(sum->x, space.whole());
      if (failed(operand))
        return failure();
      body.outputs.push_back({*operand,
                              result,
                              {.column_stride = 1},
                              true,
                              reductionKindOf(sum->kind),
                              sum->acc ? int64_t{sum->acc.getArgNumber()} : -1});
      return success();
    }
    return addOutput(value, result, value);
  }

  // One element for each place, or one for each row; `of`: what the error is about.
  LogicalResult addOutput(Value value, uint32_t result, Value of) {
    bool isWhole = elementsOf(value) == body.rows * body.columns;
    if (!isWhole && elementsOf(value) != body.rows) {
      int64_t all = body.rows * body.columns, columns = all / elementsOf(value);
      if (!columnsAreFixed && columns > 1 && columns < body.columns && all % elementsOf(value) == 0 &&
          body.columns % columns == 0)
        return cutColumns(columns); // then it is one a row
      return refuse(of, "has neither an element for each place nor one for each row of the ");
    }
    IndexMap map = isWhole ? space.whole() : space.oneARow();
    FailureOr<uint32_t> number = valueAt(value, map);
    if (failed(number))
      return failure();
    body.outputs.push_back({*number, result, space.placeOf(map)});
    return success();
  }

  LogicalResult addParts(mlir::ft::ConcatOp concat, uint32_t result) {
    ArrayRef<int64_t> whole = shape(concat.getResult());
    auto axis = static_cast<int64_t>(concat.getAxis());
    axis += axis < 0 ? static_cast<int64_t>(whole.size()) : 0;
    llvm::SmallVector<int64_t> strides = stridesOf(whole);
    int64_t begin = 0;
    for (Value part : concat.getParts()) {
      if (elementsOf(part) != body.rows * body.columns)
        return refuse(concat.getResult(), "has parts that are not as large as the ");
      FailureOr<uint32_t> number = valueAt(part, space.whole());
      FailureOr<DimensionMap> dimensions = dimensionsAt(part, space.whole());
      if (failed(number) || failed(dimensions))
        return failure();
      dimensions->begins[axis] += begin;
      *number = convertedTo(body.results[result].dtype, *number);
      body.outputs.push_back({*number, result, space.placeOf(linear(*dimensions, strides))});
      begin += shape(part)[axis];
    }
    return success();
  }

  LogicalResult refuse(Value value, StringRef why) {
    Operation *op = value.getDefiningOp() ? value.getDefiningOp() : function.getOperation();
    return op->emitOpError() << why << "space of " << body.rows << " rows and " << body.columns
                             << " columns of its cluster";
  }

  LogicalResult cutColumns(int64_t by) {
    better = space;
    better->columns = by;
    better->rows.push_back(space.columns / by);
    return failure();
  }

  FailureOr<DimensionMap> dimensionsAt(Value value, const IndexMap &map) {
    auto found = dimensionsOf(map, space, shape(value));
    if (auto *dimensions = std::get_if<DimensionMap>(&found))
      return std::move(*dimensions);
    Cut cut = std::get<Cut>(found);
    int64_t extent = space.extent(cut.digit);
    bool isColumns = cut.digit == space.rows.size();
    if (cut.by <= 1 || extent % cut.by != 0 || cut.by == extent || (isColumns && columnsAreFixed))
      return refuse(value, "lies across the rows of the ");
    if (isColumns)
      return cutColumns(cut.by);
    better = space;
    better->rows[cut.digit] = cut.by;
    better->rows.insert(better->rows.begin() + cut.digit, extent / cut.by);
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
    if (!op) {
      auto argument = cast<BlockArgument>(value);
      body.reads.push_back({argument.getArgNumber(), space.placeOf(map)});
      return static_cast<uint32_t>(body.reads.size() - 1);
    }
    if (isa<mlir::ft::ReshapeOp>(op))
      return valueAt(op->getOperand(0), map);
    if (isa<mlir::ft::BroadcastOp>(op))
      return repeatedAt(op->getOperand(0), value, map);
    if (auto slice = dyn_cast<mlir::ft::SliceOp>(op))
      return slicedAt(slice, map);
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
      return succeeded(x) ? FailureOr<uint32_t>(convertedTo(dtypeOf(op), *x)) : x;
    }
    if (map.ofColumns() != 0 || reduced->extent != body.columns)
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
    FailureOr<uint32_t> x = valueAt(op.getX(), ofOperand);
    if (failed(x))
      return failure();
    // Sums are in f32, and rounded to the type of the result.
    bool isSame = dtypeOf(op.getX()) == dtypeOf(op);
    Op made = {.kind = Op::Kind::kReduce, .reduction = reductionKindOf(op.getKind())};
    made.operands = {isSame ? *x : convertedTo(DType::kF32, *x)};
    made.dtype = isSame ? dtypeOf(op) : DType::kF32;
    return convertedTo(dtypeOf(op), add(std::move(made)));
  }

  uint32_t convertedTo(DType dtype, uint32_t x) {
    DType from = x < kOps ? body.inputs[body.reads[x].input].dtype : body.ops[x - kOps].dtype;
    if (from == dtype)
      return x;
    return add({.kind = Op::Kind::kConvert, .operands = {x}, .parameters = {}, .dtype = dtype});
  }

  uint32_t add(Op op) {
    body.ops.push_back(std::move(op));
    return kOps + static_cast<uint32_t>(body.ops.size() - 1);
  }

  FailureOr<uint32_t> computedAt(Operation *op, const IndexMap &map) {
    Value result = op->getResult(0);
    Op made = {.dtype = dtypeOf(result)};
    if (auto fill = dyn_cast<mlir::ft::FillOp>(op)) {
      made.kind = Op::Kind::kFill;
      made.parameters = {fill.getValue().convertToDouble()};
      return add(std::move(made));
    }
    if (isa<mlir::ft::IotaOp>(op)) {
      made.kind = Op::Kind::kIota;
      made.elements = elementsOf(result);
      made.place = space.placeOf(map);
      return add(std::move(made));
    }
    if (auto bits = dyn_cast<mlir::ft::RandomBitsOp>(op)) {
      auto state = dyn_cast<BlockArgument>(bits.getRng());
      if (!state || !isRandomState(state))
        return op->emitOpError("draws from a value of its cluster");
      made.kind = Op::Kind::kRandomBits;
      made.operands = {state.getArgNumber()};
      made.draw = static_cast<uint32_t>(bits.getStream());
      made.elements = elementsOf(result);
      made.place = space.placeOf(map);
      return add(std::move(made));
    }
    const ElementwiseRow *row = elementwiseRowOf(op);
    if (!row && !isa<mlir::ft::ConvertOp, mlir::ft::CopyOp>(op))
      return op->emitOpError("cannot be part of a generated kernel");
    for (Value operand : op->getOperands()) {
      FailureOr<uint32_t> number = repeatedAt(operand, result, map);
      if (failed(number))
        return failure();
      made.operands.push_back(*number);
    }
    if (!row)
      return convertedTo(made.dtype, made.operands[0]);
    made.function = row->kind;
    bool floats = IsFloat(dtypeOf(op->getOperands().back()));
    for (int i = 0; i < row->num_parameters(); ++i) { // in f32 for floats, as the kernels have them
      double number = mlir::ft::elementwise::parameter(*row, op, i);
      made.parameters.push_back(floats ? static_cast<float>(number) : number);
    }
    return add(std::move(made));
  }

  func::FuncOp function;
  SpaceDigits space;
  bool columnsAreFixed;
  ClusterBody body;
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

// One row that is cut into rows of 64.
void flatten(ClusterBody &body) {
  if (body.rows != 1)
    return;
  int64_t elements = body.columns;
  const ClusterBody before = body;
  body.columns = kClusterLanes;
  body.rows = (elements + kClusterLanes - 1) / kClusterLanes;
  body.last_columns = elements - (body.rows - 1) * kClusterLanes;
  auto cut = [&](ClusterBody::Place &place) {
    if (place.column_stride == 1)
      place.steps = body.Whole().steps;
  };
  for (ClusterBody::Read &read : body.reads)
    cut(read.place);
  for (Op &op : body.ops)
    cut(op.place);
  for (ClusterBody::Output &output : body.outputs)
    if (!output.over_rows)
      cut(output.place);
  if (!body.IsFlat())
    body = before;
}

} // namespace

FailureOr<ClusterBody> clusterBodyOf(func::FuncOp function) {
  if (failed(checkValues(function)))
    return failure();
  auto [space, columnsAreFixed] = firstSpaceOf(function);
  for (;;) {
    Analysis analysis(function, space, columnsAreFixed);
    FailureOr<ClusterBody> body = analysis.run();
    if (failed(body) && analysis.better) {
      space = *std::move(analysis.better);
      continue;
    }
    if (failed(body))
      return failure();
    flatten(*body);
    if (absl::Status status = CheckClusterBody(*body); !status.ok())
      return function.emitError() << "is no body of a cluster: " << std::string(status.message());
    return body;
  }
}

} // namespace ft::compiler
