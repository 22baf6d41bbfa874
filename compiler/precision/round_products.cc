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
using mlir::ft::isInPhase;
using mlir::ft::MatmulOp;

constexpr llvm::StringLiteral kPrecise = "e4m3", kWide = "e5m2";

// Narrower weights gain nothing, and libraries for GPUs want rows of whole 16 bytes.
constexpr int64_t kLeastExtent = 64, kExtentMultiple = 16;

// One of several, "transformer.h.3" or "3": not what is there once, such as the head.
bool isNumbered(StringAttr layer) {
  SmallVector<StringRef> parts;
  layer.getValue().split(parts, '.');
  return llvm::any_of(parts,
                      [](StringRef part) { return !part.empty() && llvm::all_of(part, llvm::isDigit); });
}

// Extents of the weight, or of its gradient, are those of the product but the rows of activations.
bool isRounded(MatmulOp product) {
  StringAttr layer = mlir::ft::getLayer(product);
  if (!layer || product.getPrecise() || !isNumbered(layer) || isInPhase(product, mlir::ft::kPhaseOptimizer) ||
      !elementsOf(product.getA().getType()).isBF16())
    return false;
  MatmulOp::Extents extents = product.extents();
  int64_t ofWeight[] = {extents.n, product.getTransposeA() ? extents.m : extents.k};
  return llvm::all_of(ofWeight,
                      [](int64_t extent) { return extent >= kLeastExtent && extent % kExtentMultiple == 0; });
}

// Gradients of activations: what backward makes, or the loss on its way, or these moved. Not parameters, and
// what forward made, which backward reads as it was kept, computed again or brought back from the host.
class GradientValues {
public:
  explicit GradientValues(Block &block) {
    for (Operation &op : block)
      if (makesGradients(&op))
        values.insert(op.result_begin(), op.result_end());
  }

  bool contains(Value value) const { return values.contains(value); }

private:
  bool makesGradients(Operation *op) const {
    if (isa<mlir::ft::LinearCrossEntropyLossGradOp>(op))
      return true;
    if (op->hasTrait<mlir::ft::MovesElements>() || isa<mlir::ft::CopyOp>(op))
      return llvm::any_of(op->getOperands(), [&](Value operand) { return contains(operand); });
    return isInPhase(op, mlir::ft::kPhaseBackward) && !isa<mlir::ft::ReloadOp, mlir::ft::ViewOp>(op);
  }

  llvm::DenseSet<Value> values;
};

// Gradients of activations span more magnitudes than these do; no product is of two of them in the wide
// format.
StringRef formatOf(Value operand, Value other, const GradientValues &gradients, bool isBlockwise) {
  bool isWide = !isBlockwise && gradients.contains(operand) && !gradients.contains(other);
  return isWide ? kWide : kPrecise;
}

struct RoundProductsPass : impl::RoundProductsPassBase<RoundProductsPass> {
  using RoundProductsPassBase::RoundProductsPassBase;

  void runOnOperation() override {
    if (fp8Recipe != "none" && fp8Recipe != "tensorwise" && fp8Recipe != "blockwise") {
      getOperation().emitError() << "fp8-recipe is '" << fp8Recipe
                                 << "'; expected none, tensorwise or blockwise";
      return signalPassFailure();
    }
    bool any = false;
    for (func::FuncOp program : mlir::ft::programsOf(getOperation()))
      any |= roundIn(program);
    if (any || fp8Recipe == "none")
      return;
    getOperation().emitError() << "fp8-recipe '" << fp8Recipe
                               << "' finds no product to round: those of numbered layers (h.0), in bf16, "
                               << "whose weights have at least " << kLeastExtent
                               << " rows and columns, multiples of " << kExtentMultiple;
    signalPassFailure();
  }

private:
  // Whether there is one.
  bool roundIn(func::FuncOp program) {
    bool any = false;
    std::optional<GradientValues> gradients;
    for (auto product : program.getOps<MatmulOp>()) {
      if (fp8Recipe != "none" && isRounded(product)) {
        if (!gradients)
          gradients.emplace(*product->getBlock());
        bool isBlockwise = fp8Recipe == "blockwise";
        product.setAFormat(formatOf(product.getA(), product.getB(), *gradients, isBlockwise));
        product.setBFormat(formatOf(product.getB(), product.getA(), *gradients, isBlockwise));
        product.setScaling(fp8Recipe);
        any = true;
      }
      product.setPrecise(false);
    }
    return any;
  }
};

} // namespace
} // namespace ft::compiler
