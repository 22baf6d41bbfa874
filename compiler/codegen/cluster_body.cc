#include "compiler/codegen/cluster_body.h"

#include "compiler/codegen/elements.h"

namespace ft::compiler {
namespace {

using namespace mlir;
using Op = ClusterBody::Op;

DType dtypeOf(Value value) {
  Type element = cast<RankedTensorType>(value.getType()).getElementType();
  if (element.isF32())
    return DType::kF32;
  if (element.isBF16())
    return DType::kBF16;
  if (element.isF16())
    return DType::kF16;
  return element.isInteger(1) ? DType::kU8 : DType::kI32;
}

ReductionKind kindOf(StringRef name) {
  return name == "sum" ? ReductionKind::kSum : name == "max" ? ReductionKind::kMax : ReductionKind::kMin;
}

class BodyBuilder {
public:
  BodyBuilder(func::FuncOp function, const Space &space) : function(function), space(space) {}

  FailureOr<ClusterBody> build() {
    body.rows = space.rows();
    body.columns = space.columns();
    body.last_columns = space.lastColumns();
    for (Value argument : function.getArguments()) {
      Layout layout = space.layout(argument);
      numbers[argument] = body.inputs.size();
      body.inputs.push_back({.dtype = dtypeOf(argument), .rows = layout.rows, .columns = hasColumns(layout)});
    }
    for (Operation &op : function.front().without_terminator())
      if (!asColumnReduction(op.getResult(0)))
        add(&op);
    for (Value value : function.front().getTerminator()->getOperands())
      addOutput(value);
    if (absl::Status status = CheckClusterBody(body); !status.ok())
      return function.emitError() << "is no body of a cluster: " << std::string(status.message());
    return body;
  }

private:
  // With one column both are the same places, and one of them has to be said.
  bool hasColumns(Layout layout) const { return layout.columns || space.columns() == 1; }

  void add(Operation *op) {
    Value result = op->getResult(0);
    if (isa<mlir::ft::BroadcastOp, mlir::ft::ReshapeOp>(op)) {
      numbers[result] = numbers.lookup(op->getOperand(0));
      return;
    }
    Op made;
    made.dtype = dtypeOf(result);
    for (Value operand : op->getOperands())
      made.operands.push_back(numbers.lookup(operand));
    if (auto fill = dyn_cast<mlir::ft::FillOp>(op)) {
      made.kind = Op::Kind::kFill;
      made.parameters = {fill.getValue().convertToDouble()};
    } else if (auto reduce = dyn_cast<mlir::ft::ReduceOp>(op)) {
      made.kind = Op::Kind::kReduce;
      made.reduction = kindOf(reduce.getKind());
    } else if (const ElementwiseRow *row = elementwiseRowOf(op)) {
      made.function = row->kind;
      setParameters(*row, op, made);
    } else {
      made.kind = Op::Kind::kConvert;
    }
    numbers[result] = body.values();
    body.ops.push_back(std::move(made));
  }

  // In f32 for floats, as the kernels have them.
  void setParameters(const ElementwiseRow &row, Operation *op, Op &made) {
    bool floats = IsFloat(dtypeOf(op->getOperands().back()));
    for (int i = 0; i < row.num_parameters(); ++i) {
      double number = mlir::ft::elementwise::parameter(row, op, i);
      made.parameters.push_back(floats ? static_cast<float>(number) : number);
    }
  }

  void addOutput(Value value) {
    ClusterBody::Output output = {.dtype = dtypeOf(value)};
    if (auto reduction = asColumnReduction(value)) {
      output.value = numbers.lookup(reduction->operand);
      output.columns = output.over_rows = true;
      output.reduction = kindOf(reduction->kind);
    } else {
      output.value = numbers.lookup(value);
      output.columns = hasColumns(space.layout(value));
    }
    body.outputs.push_back(output);
  }

  func::FuncOp function;
  const Space &space;
  ClusterBody body;
  llvm::DenseMap<Value, uint32_t> numbers;
};

} // namespace

FailureOr<ClusterBody> clusterBodyOf(func::FuncOp body) {
  FailureOr<Space> space = Space::of(body);
  if (failed(space))
    return failure();
  return BodyBuilder(body, *space).build();
}

} // namespace ft::compiler
