#include "compiler/codegen/body_values.h"

#include "compiler/codegen/lane_vectors.h"
#include "dialects/ft/verify.h"

namespace ft::compiler {

using namespace mlir;

Type elementOf(Value value) { return mlir::ft::verify::tensor(value).getElementType(); }

llvm::SmallVector<PartialResult> partialResultsOf(func::FuncOp body) {
  Operation *terminator = body.front().getTerminator();
  unsigned inputs = body.getNumArguments(), partial = inputs + terminator->getNumOperands();
  llvm::SmallVector<PartialResult> results;
  for (auto [index, value] : llvm::enumerate(terminator->getOperands()))
    if (auto reduction = asColumnReduction(value))
      results.push_back({*reduction, value, inputs + static_cast<unsigned>(index), partial++});
  return results;
}

Lanes BodyValues::fillOf(mlir::ft::FillOp op, int64_t lanes) const {
  Lanes zero = zeros(b, lanes, registerType(b, elementOf(op)));
  return roundTo(elementOf(op), constant(zero, op.getValue().convertToDouble()));
}

Lanes BodyValues::evaluate(Operation *op, ArrayRef<Lanes> operands) const {
  Type element = elementOf(op->getResult(0));
  if (const ElementwiseRow *row = elementwiseRowOf(op)) {
    llvm::SmallVector<double, 2> parameters;
    for (int i = 0; i < row->num_parameters(); ++i)
      parameters.push_back(mlir::ft::elementwise::parameter(*row, op, i));
    return roundTo(element, elementwiseValue(*row, operands, parameters));
  }
  if (isa<mlir::ft::ConvertOp, mlir::ft::CopyOp>(op))
    return roundTo(element, convertTo(element, operands[0]));
  return operands[0]; // moved
}

Lanes BodyValues::vectorOf(Value value, LanesOf &known, LoadArgument load) const {
  if (auto found = known.find(value); found != known.end())
    return found->second;
  Lanes lanes;
  if (auto fill = value.getDefiningOp<mlir::ft::FillOp>()) {
    lanes = fillOf(fill, width);
  } else if (!space.layout(value).columns) {
    lanes = splat(rowValues.lookup(value), width);
  } else if (auto argument = dyn_cast<BlockArgument>(value)) {
    lanes = load(argument);
  } else {
    Operation *op = value.getDefiningOp();
    llvm::SmallVector<Lanes> operands;
    for (Value operand : op->getOperands())
      operands.push_back(vectorOf(operand, known, load));
    lanes = evaluate(op, operands);
  }
  known[value] = lanes;
  return lanes;
}

void BodyValues::evaluateScalars(unsigned level) {
  for (Operation &op : body.front().without_terminator()) {
    Value result = op.getResult(0);
    if (space.level(result) != level || space.layout(result).columns || rowValues.contains(result) ||
        asColumnReduction(result))
      continue;
    if (auto fill = dyn_cast<mlir::ft::FillOp>(op)) {
      rowValues[result] = fillOf(fill, 0);
      continue;
    }
    llvm::SmallVector<Lanes> operands;
    for (Value operand : op.getOperands()) {
      auto fill = operand.getDefiningOp<mlir::ft::FillOp>();
      operands.push_back(fill ? fillOf(fill, 0) : rowValues.lookup(operand));
    }
    rowValues[result] = evaluate(&op, operands);
  }
}

} // namespace ft::compiler
