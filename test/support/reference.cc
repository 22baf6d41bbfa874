#include "test/support/reference.h"

#include "dialects/ft/dialect.h"
#include "dialects/ft/signature.h"
#include "test/support/reference_ops.h"

namespace mlir::ft::test {

void Reference::evaluate(Operation& op, const NamedArrays& parameters, const StepInputs& inputs) {
  if (auto get = dyn_cast<GetOp>(op)) {
    values[get.getValue().getAsOpaquePointer()] = parameters.at(get.getParameter().str());
    return;
  }
  if (auto input = dyn_cast<InputOp>(op)) {
    values[input.getValue().getAsOpaquePointer()] = inputs.inputs.at(input.getName().str());
    return;
  }
  if (auto call = dyn_cast<CallOp>(op)) {
    auto callee = SymbolTable::lookupNearestSymbolFrom<func::FuncOp>(op.getParentOp(), call.getCalleeAttr());
    Block& body = callee.getBody().front();
    for (auto [argument, operand] : llvm::zip_equal(body.getArguments(), call.getOperands()))
      values[argument.getAsOpaquePointer()] = value(operand);
    for (Operation& inner : body.without_terminator()) evaluate(inner, parameters, inputs);
    for (auto [result, returned] : llvm::zip_equal(call.getResults(), body.getTerminator()->getOperands()))
      values[result.getAsOpaquePointer()] = value(returned);
    return;
  }
  OpEvaluation evaluation{&op, {}, {}, &frozen[&op]};
  for (Value operand : op.getOperands()) evaluation.in.push_back(&value(operand));
  for (Type type : op.getResultTypes()) evaluation.out.emplace_back(type);
  auto function = referenceOps().find(op.getName().stripDialect().str());
  if (function == referenceOps().end())
    llvm::report_fatal_error(Twine("the float64 reference has no ") + op.getName().getStringRef());
  function->second(evaluation);
  for (auto [result, array] : llvm::zip_equal(op.getResults(), evaluation.out))
    values[result.getAsOpaquePointer()] = std::move(array);
}

double Reference::loss(const NamedArrays& parameters, const StepInputs& inputs) {
  Block& block = forward.getBody().front();
  for (BlockArgument argument : block.getArguments())
    values[argument.getAsOpaquePointer()] = inputs.of(inputName(forward, argument.getArgNumber()).str());
  for (Operation& op : block.without_terminator()) evaluate(op, parameters, inputs);
  return value(block.getTerminator()->getOperand(0)).data[0];
}

std::vector<std::string> Reference::supportedOps() {
  std::vector<std::string> names;
  for (const auto& [name, function] : referenceOps()) names.push_back(name);
  return names;
}

}  // namespace mlir::ft::test
