// Has products of layers round their operands to floats of 8 bits.
//
// Enters: functions whose floats have their types. Leaves: ft.matmul with formats and scaling. Refused: an
// unknown recipe, and programs in which it would change nothing.
#include "compiler/precision/passes.h"

#include "compiler/precision/element_types.h"
#include "dialects/ft/composites.h"
#include "dialects/ft/layer.h"
#include "dialects/ft/signature.h"
#include "llvm/ADT/StringExtras.h"

namespace ft::compiler {

#define GEN_PASS_DEF_ROUNDPRODUCTSPASS
#include "compiler/precision/passes.h.inc"

namespace {

using namespace mlir;
using mlir::ft::MatmulOp;

constexpr llvm::StringLiteral kPrecise = "e4m3", kWide = "e5m2";

// Below this, rounding takes longer than the product gains; and what libraries for GPUs want.
constexpr int64_t kLeastExtent = 64, kExtentMultiple = 16;

bool isInPhase(Operation *op, StringRef phase) {
  StringAttr own = mlir::ft::getPhase(op);
  return own && own.getValue() == phase;
}

// One of several, "transformer.h.3": not what is there once, such as the head.
bool isNumbered(StringAttr layer) {
  StringRef last = layer.getValue().rsplit('.').second;
  return !last.empty() && llvm::all_of(last, llvm::isDigit);
}

// Extents of the weight, or of its gradient, are those of the product but the rows of activations.
bool isRounded(MatmulOp product) {
  StringAttr layer = mlir::ft::getLayer(product);
  if (!layer || !isNumbered(layer) || isInPhase(product, mlir::ft::kPhaseOptimizer) ||
      !elementsOf(product.getA().getType()).isBF16())
    return false;
  MatmulOp::Extents extents = product.extents();
  int64_t ofWeight[] = {extents.n, product.getTransposeA() ? extents.m : extents.k};
  return llvm::all_of(ofWeight,
                      [](int64_t extent) { return extent >= kLeastExtent && extent % kExtentMultiple == 0; });
}

// A parameter, or what forward made, which backward reads as it was kept, computed again or brought back from
// the host; or the same elements elsewhere.
bool isOfForward(Value value) {
  Operation *op = value.getDefiningOp();
  if (!op || isa<mlir::ft::ReloadOp, mlir::ft::ViewOp>(op) || !isInPhase(op, mlir::ft::kPhaseBackward))
    return true;
  bool isMoved = op->hasTrait<mlir::ft::MovesElements>() || isa<mlir::ft::CopyOp>(op);
  return isMoved && llvm::all_of(op->getOperands(), isOfForward);
}

// Gradients of activations span more magnitudes than these do.
StringRef formatOf(MatmulOp product, Value operand, Value other, bool isBlockwise) {
  if (isBlockwise || !isInPhase(product, mlir::ft::kPhaseBackward) || isOfForward(operand))
    return kPrecise;
  return isOfForward(other) ? kWide : kPrecise; // no product is of two wide ones
}

struct RoundProductsPass : impl::RoundProductsPassBase<RoundProductsPass> {
  using RoundProductsPassBase::RoundProductsPassBase;

  void runOnOperation() override {
    if (fp8Recipe == "none")
      return;
    if (fp8Recipe != "tensorwise" && fp8Recipe != "blockwise") {
      getOperation().emitError() << "fp8-recipe is '" << fp8Recipe
                                 << "'; expected none, tensorwise or blockwise";
      return signalPassFailure();
    }
    bool any = false;
    for (func::FuncOp program : mlir::ft::programsOf(getOperation()))
      program.walk([&](MatmulOp product) {
        if (!isRounded(product))
          return;
        bool isBlockwise = fp8Recipe == "blockwise";
        product.setAFormat(formatOf(product, product.getA(), product.getB(), isBlockwise));
        product.setBFormat(formatOf(product, product.getB(), product.getA(), isBlockwise));
        product.setScaling(fp8Recipe);
        any = true;
      });
    if (any)
      return;
    getOperation().emitError() << "fp8-recipe '" << fp8Recipe
                               << "' finds no product to round: those of numbered layers (h.0), in bf16, "
                               << "whose weights have at least " << kLeastExtent
                               << " rows and columns, multiples of " << kExtentMultiple;
    signalPassFailure();
  }
};

} // namespace
} // namespace ft::compiler
