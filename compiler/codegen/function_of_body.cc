// Every value is either whole, with a dimension for the rows of each period and one for the columns, or one a
// row, with one column. What has another shape is repeated before an op reads it, which costs nothing.
#include "compiler/codegen/function_of_body.h"

#include "compiler/codegen/cluster_body.h"
#include "dialects/ft/clusters.h"
#include "dialects/ft/elementwise.h"
#include "runtime/plan/plan_clusters.h"

#include <algorithm>

namespace ft::compiler {
namespace {

using namespace mlir;
using BodyOp = ClusterBody::Op;
using Dims = SmallVector<int64_t>;

StringRef nameOf(ReductionKind kind) {
  return kind == ReductionKind::kSum ? "sum" : kind == ReductionKind::kMax ? "max" : "min";
}

class FunctionBuilder {
public:
  FunctionBuilder(const ClusterBody &body, MLIRContext &context)
      : body(body), b(&context), loc(UnknownLoc::get(&context)), hasColumns(HasColumns(body)) {}

  OwningOpRef<func::FuncOp> build() {
    if (!findRows())
      return {};
    auto inputTypes = llvm::map_to_vector(body.inputs, [&](const ClusterBody::Input &input) {
      return Type(RankedTensorType::get(shapeOf(input), elementOf(input.dtype)));
    });
    auto function = func::FuncOp::create(loc, "cluster", b.getFunctionType(inputTypes, {}));
    function.setPrivate();
    function->setAttr(mlir::ft::kClusterAttr, b.getUnitAttr());
    Block *block = function.addEntryBlock();
    b.setInsertionPointToEnd(block);
    values.append(block->args_begin(), block->args_end());
    for (const BodyOp &op : body.ops)
      values.push_back(make(op));
    auto results =
        llvm::map_to_vector(body.outputs, [&](const ClusterBody::Output &output) { return make(output); });
    func::ReturnOp::create(b, loc, results);
    function.setFunctionType(b.getFunctionType(inputTypes, TypeRange(results)));
    return function;
  }

private:
  // Cut into rows that mean nothing: whole values, and numbers for all.
  bool isFlat() const {
    auto isWholeOrOne = [&](const ClusterBody::Input &input) {
      return input.columns ? input.rows == body.rows : input.rows == 1;
    };
    return body.last_columns != body.columns ||
           (body.columns == kClusterLanes && llvm::all_of(body.inputs, isWholeOrOne) &&
            llvm::none_of(body.ops, [](const BodyOp &op) { return op.kind == BodyOp::Kind::kReduce; }) &&
            llvm::all_of(body.outputs,
                         [](const ClusterBody::Output &out) { return out.columns && !out.over_rows; }));
  }

  // Rows as dimensions, so that inputs of fewer rows have the last of them; false where there are no such.
  bool findRows() {
    SmallVector<int64_t> periods = {body.rows};
    for (const ClusterBody::Input &input : body.inputs)
      if (input.rows > 1)
        periods.push_back(input.rows);
    llvm::sort(periods, std::greater<>());
    periods.erase(llvm::unique(periods), periods.end());
    periods.push_back(1);
    for (size_t i = 0; i + 1 < periods.size(); ++i) {
      if (periods[i] % periods[i + 1] != 0)
        return false;
      if (periods[i] > 1)
        rowDims.push_back(periods[i] / periods[i + 1]);
    }
    bool overRows = llvm::any_of(body.outputs, [](const ClusterBody::Output &out) { return out.over_rows; });
    if (rowDims.empty() && overRows)
      rowDims.push_back(1);
    return true;
  }

  Type elementOf(DType dtype) {
    switch (dtype) {
    case DType::kBF16:
      return b.getBF16Type();
    case DType::kF16:
      return b.getF16Type();
    case DType::kI32:
      return b.getI32Type();
    case DType::kU8:
      return b.getI1Type();
    default:
      return b.getF32Type();
    }
  }

  Dims whole() const {
    if (isFlat())
      return {(body.rows - 1) * body.columns + body.last_columns};
    Dims dims = rowDims;
    dims.push_back(body.columns);
    return dims;
  }
  Dims oneARow() const {
    Dims dims = isFlat() ? Dims() : rowDims;
    if (!isFlat())
      dims.push_back(1);
    return dims;
  }

  Dims shapeOf(const ClusterBody::Input &input) const {
    if (isFlat())
      return input.columns ? whole() : Dims();
    Dims dims;
    for (int64_t rows = 1, i = rowDims.size(); rows < input.rows; rows *= dims.front())
      dims.insert(dims.begin(), rowDims[--i]);
    if (input.columns)
      dims.push_back(body.columns);
    else if (!dims.empty())
      dims.push_back(1);
    return dims;
  }

  // `value` repeated to this shape.
  Value as(Value value, ArrayRef<int64_t> dims) {
    auto type = cast<RankedTensorType>(value.getType());
    if (type.getShape() == dims)
      return value;
    return mlir::ft::BroadcastOp::create(b, loc, RankedTensorType::get(dims, type.getElementType()), value);
  }

  Value make(const BodyOp &op) {
    Dims dims = hasColumns[values.size()] ? whole() : oneARow();
    auto type = RankedTensorType::get(dims, elementOf(op.dtype));
    if (op.kind == BodyOp::Kind::kFill)
      return mlir::ft::FillOp::create(b, loc, type, b.getF64FloatAttr(op.parameters[0]));
    if (op.kind == BodyOp::Kind::kReduce) {
      int64_t last = rowDims.size();
      Value reduced =
          mlir::ft::ReduceOp::create(b, loc, type.clone(rowDims), as(values[op.operands[0]], whole()),
                                     nameOf(op.reduction), ArrayRef(last));
      return mlir::ft::ReshapeOp::create(b, loc, type, reduced);
    }
    auto operands = llvm::map_to_vector(op.operands, [&](uint32_t value) { return as(values[value], dims); });
    if (op.kind == BodyOp::Kind::kConvert)
      return convert(type, operands[0]);
    const ElementwiseRow &row = RowOf(op.function);
    OperationState state(loc, ("ft." + StringRef(row.name)).str());
    mlir::ft::elementwise::build(row, b, state, type, operands, op.parameters);
    return b.create(state)->getResult(0);
  }

  Value convert(RankedTensorType type, Value x) {
    Type from = cast<RankedTensorType>(x.getType()).getElementType();
    if (isa<FloatType>(from) && isa<FloatType>(type.getElementType()))
      return mlir::ft::CopyOp::create(b, loc, type, x);
    return mlir::ft::ConvertOp::create(b, loc, type, x);
  }

  Value make(const ClusterBody::Output &output) {
    Value value = as(values[output.value], output.columns ? whole() : oneARow());
    if (!output.over_rows)
      return value;
    auto dims = llvm::to_vector(llvm::seq<int64_t>(0, rowDims.size()));
    auto type = RankedTensorType::get({body.columns}, elementOf(output.dtype));
    return mlir::ft::ReduceOp::create(b, loc, type, value, nameOf(output.reduction), dims);
  }

  const ClusterBody &body;
  OpBuilder b;
  Location loc;
  std::vector<bool> hasColumns; // by value
  Dims rowDims;
  SmallVector<Value> values;
};

} // namespace

OwningOpRef<func::FuncOp> functionOf(const ClusterBody &body, MLIRContext &context) {
  OwningOpRef<func::FuncOp> function = FunctionBuilder(body, context).build();
  if (!function)
    return {};
  ScopedDiagnosticHandler silent(&context, [](Diagnostic &) { return success(); });
  FailureOr<ClusterBody> again = clusterBodyOf(*function);
  if (failed(again) || ToProto(*again).SerializeAsString() != ToProto(body).SerializeAsString())
    return {};
  return function;
}

} // namespace ft::compiler
