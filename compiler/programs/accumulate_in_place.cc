// Lets the ops that make gradients add them to the sums over micro-steps themselves.
//
// Enters: @train_micro and @train_step with final types and without composites, before clusters are formed.
// Leaves: see passes.td. Sums of what each micro-step reduces stay as they are.
#include "compiler/programs/passes.h"
#include "dialects/ft/elementwise.h"

namespace ft::compiler {

#define GEN_PASS_DEF_ACCUMULATEINPLACEPASS
#include "compiler/programs/passes.h.inc"

namespace {

using namespace mlir;
using mlir::ft::AccumulatorOp;
using mlir::ft::KernelOpInterface;
using mlir::ft::PackOp;
using mlir::ft::ViewOp;

// The first of the results that continue each other up to `value`, each read by the next alone; null when
// one is read by others, too.
OpResult beginningOf(Value value) {
  auto result = dyn_cast<OpResult>(value);
  while (result && result.hasOneUse()) {
    auto kernel = dyn_cast<KernelOpInterface>(result.getOwner());
    Value before = kernel ? kernel.getTiedOperand(result.getResultNumber()) : Value();
    if (!before)
      return result;
    result = dyn_cast<OpResult>(before);
  }
  return {};
}

// Whether `value` is made as `sum` and itself from now on.
bool beginWith(Value value, Value sum) {
  OpResult first = beginningOf(value);
  auto kernel = first ? dyn_cast<KernelOpInterface>(first.getOwner()) : KernelOpInterface();
  return kernel && kernel.takeAccumulator(first.getResultNumber(), sum);
}

bool isZero(Value value) {
  auto fill = value.getDefiningOp<mlir::ft::FillOp>();
  return fill && fill.getValue().isZero();
}

// `sum` and what is packed. What has no way to begin with it is added by an op of its own, which becomes part
// of the cluster that makes it.
Value added(PackOp pack, Value value, Value sum) {
  if (isZero(value))
    return sum;
  if (beginWith(value, sum))
    return value;
  Operation *maker = value.getDefiningOp();
  OpBuilder builder(pack);
  if (maker)
    builder.setInsertionPointAfter(maker);
  auto add = mlir::ft::AddOp::create(builder, pack.getLoc(), ValueRange{value, sum});
  mlir::ft::setLayer(add,
                     mlir::ft::getLayer(maker && mlir::ft::getPhase(maker) ? maker : pack.getOperation()));
  mlir::ft::setPhase(add, mlir::ft::kPhaseBackward);
  return add->getResult(0);
}

// What is packed is added to the sum where that lies.
void accumulate(PackOp pack, StringRef name) {
  OpBuilder builder = OpBuilder::atBlockBegin(pack->getBlock());
  auto sums = AccumulatorOp::create(builder, pack.getLoc(), pack.getFlat().getType(), name);
  for (auto [index, parameter] : llvm::enumerate(pack.getParameters().getAsRange<FlatSymbolRefAttr>())) {
    Value value = pack.getValues()[index];
    Value sum = ViewOp::create(builder, pack.getLoc(), value.getType(), sums.getFlat(), parameter);
    pack->setOperand(index, added(pack, value, sum));
    if (sum.use_empty())
      sum.getDefiningOp()->erase();
  }
}

struct AccumulateInPlacePass : impl::AccumulateInPlacePassBase<AccumulateInPlacePass> {
  void runOnOperation() override {
    for (StringRef name : {mlir::ft::kTrainMicroFunction, mlir::ft::kTrainStepFunction})
      if (auto function = getOperation().lookupSymbol<func::FuncOp>(name))
        for (PackOp pack : llvm::make_early_inc_range(function.getOps<PackOp>()))
          if (auto sum = mlir::ft::microStepSumOf(pack.getFlat()); sum && pack.isOfGradients()) {
            accumulate(pack, sum.getName());
            sum.setInPlace(true);
          }
  }
};

} // namespace
} // namespace ft::compiler
