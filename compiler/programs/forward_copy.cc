#include "compiler/programs/forward_copy.h"

#include "dialects/ft/composites.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

namespace ft::compiler {

using namespace mlir;
using mlir::ft::CallOp;
using mlir::ft::InputOp;
using mlir::ft::RandomOpInterface;

namespace {

// Of which composite one is the variant without dropout.
constexpr llvm::StringLiteral kWithoutDropout = "ft.without_dropout_of";

// Composites with dropout in them have a variant without.
class DropoutRemover {
public:
  explicit DropoutRemover(ModuleOp module) : symbols(module) {
    for (auto function : module.getOps<func::FuncOp>()) // another program may have made one
      if (auto of = function->getAttrOfType<FlatSymbolRefAttr>(kWithoutDropout))
        variants[symbols.lookup(of.getValue())] = function;
  }

  void removeFrom(func::FuncOp function) {
    for (auto op : llvm::make_early_inc_range(function.getOps<RandomOpInterface>())) {
      if (!op.hasDropout())
        continue;
      if (auto call = dyn_cast<CallOp>(op.getOperation()))
        call.setCallee(variantOf(mlir::ft::calleeOf(call)).getSymName());
      else
        op.removeDropout();
    }
  }

private:
  func::FuncOp variantOf(func::FuncOp composite) {
    func::FuncOp &variant = variants[composite];
    if (variant)
      return variant;
    func::FuncOp clone = composite.clone();
    clone.setSymName((composite.getSymName() + ".eval").str());
    clone->setAttr(kWithoutDropout, FlatSymbolRefAttr::get(composite.getSymNameAttr()));
    symbols.insert(clone); // with a number behind its name, where that is taken
    removeFrom(clone);
    return variants[composite] = clone;
  }

  SymbolTable symbols;
  llvm::DenseMap<Operation *, func::FuncOp> variants;
};

} // namespace

func::FuncOp copyWithoutDropout(func::FuncOp forward, StringRef name) {
  auto module = forward->getParentOfType<ModuleOp>();
  func::FuncOp copy = forward.clone();
  copy.setSymName(name);
  module.push_back(copy);
  DropoutRemover(module).removeFrom(copy);
  for (InputOp input : llvm::make_early_inc_range(copy.getOps<InputOp>()))
    if (input->use_empty())
      input.erase();
  return copy;
}

void eraseDeadOps(func::FuncOp function) {
  for (Operation &op : llvm::make_early_inc_range(llvm::reverse(function.getBody().front())))
    if (isOpTriviallyDead(&op))
      op.erase();
}

void markForward(func::FuncOp function) {
  for (Operation &op : function.getBody().front().without_terminator())
    mlir::ft::setPhase(&op, mlir::ft::kPhaseForward);
}

} // namespace ft::compiler
