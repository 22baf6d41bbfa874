#include "compiler/codegen/testing/body_cases.h"

#include <cmath>

#include "mlir/IR/IRMapping.h"

namespace ft::compiler::testing {

using namespace mlir;

void compare(const HostTensor &got, const HostTensor &expected, const BodyCase &body) {
  double largest = 0;
  for (double value : expected.values)
    largest = std::max(largest, std::abs(value));
  for (size_t i = 0; i < expected.values.size(); ++i) {
    double allowed = isa<FloatType>(got.element()) ? body.ulps * ulpOf(expected.values[i], got.element()) +
                                                         body.ofLargest * ulpOf(largest, got.element())
                                                   : 0;
    ASSERT_LE(std::abs(got.values[i] - expected.values[i]), allowed)
        << "element " << i << " is " << got.values[i] << ", not " << expected.values[i] << "; "
        << std::abs(got.values[i] - expected.values[i]) / ulpOf(expected.values[i], got.element()) << " ulps";
  }
}

std::vector<HostTensor> inputsOf(func::FuncOp body, const BodyCase &bodyCase) {
  std::vector<HostTensor> inputs;
  for (auto [i, type] : llvm::enumerate(body.getArgumentTypes())) {
    inputs.emplace_back(cast<RankedTensorType>(type));
    HostTensor &input = inputs.back();
    if (input.element().isInteger(64)) { // the state of a generator
      input.values = {-1234567890123, 17, 3};
      continue;
    }
    // Moments of an optimizer are not negative.
    input.values = numbers(input.values.size(), 31 * i + 7, bodyCase.text == kAdamW && i >= 3);
    for (double &value : input.values)
      value = input.element().isInteger(32) ? std::trunc(20 * value) : rounded(value, input.element());
  }
  return inputs;
}

bool isMoved(Operation *op) {
  return isa<mlir::ft::FillOp, mlir::ft::IotaOp, mlir::ft::ReshapeOp, mlir::ft::BroadcastOp>(op);
}

OwningOpRef<ModuleOp> alone(Operation *op) {
  OpBuilder builder(op->getContext());
  OwningOpRef<ModuleOp> module = ModuleOp::create(op->getLoc());
  builder.setInsertionPointToEnd(module->getBody());
  auto body = func::FuncOp::create(builder, op->getLoc(), "alone",
                                   builder.getFunctionType(op->getOperandTypes(), op->getResultTypes()));
  Block *block = body.addEntryBlock();
  builder.setInsertionPointToStart(block);
  IRMapping mapping;
  mapping.map(op->getOperands(), block->getArguments());
  func::ReturnOp::create(builder, op->getLoc(), builder.clone(*op, mapping)->getResults());
  return module;
}

} // namespace ft::compiler::testing
