// Marks products that are not rounded to 8 bits by any recipe.
//
// Enters: @forward, with all composites as ops. Leaves: `precise` on some. Nothing is refused.
#include "compiler/precision/passes.h"

#include "dialects/ft/dialect.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "runtime/base/lora_names.h"

namespace ft::compiler {

#define GEN_PASS_DEF_MARKPRECISEPASS
#include "compiler/precision/passes.h.inc"

namespace {

using namespace mlir;
using mlir::ft::MatmulOp;

// Walks from values to what makes them, up to the next products.
class LastProducts {
public:
  void add(Value value) {
    if (Operation *op = value.getDefiningOp(); op && seen.insert(op).second)
      pending.push_back(op);
  }

  void mark() {
    while (!pending.empty()) {
      Operation *op = pending.pop_back_val();
      if (auto product = dyn_cast<MatmulOp>(op))
        product.setPrecise(true);
      else if (!isa<mlir::ft::AttentionOp, mlir::ft::DotOp, mlir::ft::GroupedDotOp>(op))
        for (Value operand : op->getOperands())
          add(operand);
    }
  }

private:
  llvm::DenseSet<Operation *> seen;
  SmallVector<Operation *> pending;
};

bool isOfAdapter(MatmulOp product) {
  auto weight = product.getB().getDefiningOp<mlir::ft::GetOp>();
  return weight &&
         (weight.getParameter().ends_with(::ft::kLoraA) || weight.getParameter().ends_with(::ft::kLoraB));
}

struct MarkPrecisePass : impl::MarkPrecisePassBase<MarkPrecisePass> {
  void runOnOperation() override {
    auto forward = getOperation().lookupSymbol<func::FuncOp>(mlir::ft::kForwardFunction);
    if (!forward)
      return;
    LastProducts products;
    forward.walk([&](Operation *op) {
      if (auto sort = dyn_cast<mlir::ft::ArgsortOp>(op))
        products.add(sort->getOperand(0));
      else if (auto loss = dyn_cast<mlir::ft::CrossEntropyOp>(op))
        products.add(loss.getLogits());
      else if (auto product = dyn_cast<MatmulOp>(op); product && isOfAdapter(product))
        product.setPrecise(true);
    });
    products.mark();
  }
};

} // namespace
} // namespace ft::compiler
