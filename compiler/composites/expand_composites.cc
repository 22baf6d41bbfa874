// --ft-expand-composites
// Enters: programs whose element types are final. Leaves: them without ft.call, and no composites. Nothing is
// refused.
#include "compiler/composites/passes.h"

#include "dialects/ft/composites.h"
#include "mlir/IR/IRMapping.h"

namespace ft::compiler {

#define GEN_PASS_DEF_EXPANDCOMPOSITESPASS
#include "compiler/composites/passes.h.inc"

namespace {

using namespace mlir;
using mlir::ft::CallOp;
using mlir::ft::CopyOp;

class Expansion {
public:
  explicit Expansion(CallOp call)
      : call(call), builder(call), attributes(call->getDiscardableAttrDictionary()) {
    attributes.erase(mlir::ft::kRematAttr); // which was said of the whole
  }

  /// Leaves the calls that its body has in `calls`.
  void run(SmallVectorImpl<CallOp> &calls) {
    Block &body = mlir::ft::calleeOf(call).getBody().front();
    IRMapping values;
    for (auto [argument, operand] : llvm::zip_equal(body.getArguments(), call.getInputs()))
      values.map(argument, inType(argument.getType(), operand));
    for (Operation &op : body.without_terminator()) {
      if (auto inner = dyn_cast<CallOp>(marked(builder.clone(op, values))))
        calls.push_back(inner);
    }
    for (auto [output, value] : llvm::zip_equal(call.getOutputs(), body.getTerminator()->getOperands()))
      output.replaceAllUsesWith(inType(output.getType(), values.lookup(value)));
    call.erase();
  }

private:
  Value inType(Type type, Value value) {
    if (value.getType() == type)
      return value;
    return marked(CopyOp::create(builder, call.getLoc(), type, value))->getResult(0);
  }

  /// It has the layer and the phase of the call.
  Operation *marked(Operation *op) {
    for (NamedAttribute attr : attributes)
      op->setAttr(attr.getName(), attr.getValue());
    return op;
  }

  CallOp call;
  OpBuilder builder;
  NamedAttrList attributes;
};

struct ExpandCompositesPass : impl::ExpandCompositesPassBase<ExpandCompositesPass> {
  void runOnOperation() override {
    for (func::FuncOp program : mlir::ft::programsOf(getOperation())) {
      SmallVector<CallOp> calls(program.getOps<CallOp>());
      while (!calls.empty())
        Expansion(calls.pop_back_val()).run(calls);
    }
    for (func::FuncOp composite : llvm::make_early_inc_range(mlir::ft::compositesOf(getOperation())))
      composite.erase();
  }
};

} // namespace
} // namespace ft::compiler
