// --ft-record-saved
// Enters: @train_step whose forward ops are marked `remat`, in the types that they will have. Leaves: the
// attribute `ft.saved` of the module, which becomes a table of the plan. Nothing is refused.
#include "compiler/remat/passes.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace ft::compiler {

#define GEN_PASS_DEF_RECORDSAVEDPASS
#include "compiler/remat/passes.h.inc"

namespace {

using namespace mlir;

int64_t bytesOfResults(Operation *op) {
  int64_t bytes = 0;
  for (Type type : op->getResultTypes())
    if (auto tensor = dyn_cast<RankedTensorType>(type))
      bytes += tensor.getNumElements() * mlir::ft::elementBytes(tensor.getElementType());
  return bytes;
}

struct RecordSavedPass : impl::RecordSavedPassBase<RecordSavedPass> {
  void runOnOperation() override {
    auto train = getOperation().lookupSymbol<func::FuncOp>(mlir::ft::kTrainStepFunction);
    if (!train)
      return;
    Builder builder(&getContext());
    SmallVector<Attribute> rows;
    for (Operation &op : train.getBody().front()) {
      auto choice = op.getAttrOfType<StringAttr>(mlir::ft::kRematAttr);
      if (!choice)
        continue;
      StringAttr layer = mlir::ft::getLayer(&op);
      auto cost = dyn_cast<mlir::ft::CostOpInterface>(op);
      StringRef kernel = cast<mlir::ft::KernelOpInterface>(op).getKernelName();
      auto name = (layer ? layer.getValue() + "." : Twine()).str() + kernel.str();
      rows.push_back(builder.getDictionaryAttr({
          builder.getNamedAttr("bytes", builder.getI64IntegerAttr(bytesOfResults(&op))),
          builder.getNamedAttr("choice", choice),
          builder.getNamedAttr("flops", builder.getI64IntegerAttr(cost ? cost.getFlops() : 0)),
          builder.getNamedAttr("layer", layer ? layer : builder.getStringAttr("")),
          builder.getNamedAttr("value", builder.getStringAttr(name)),
      }));
    }
    if (!rows.empty())
      getOperation()->setAttr(mlir::ft::kSavedAttr, builder.getArrayAttr(rows));
  }
};

} // namespace
} // namespace ft::compiler
