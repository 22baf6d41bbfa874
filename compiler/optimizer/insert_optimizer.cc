// Appends clipping and the optimizer to @train_step and makes @init.
//
// Enters: units formed, one ft.pack per trained unit. Leaves: see passes.td. The optimizer works on flat
// gradients, so units are formed before it: one norm kernel and one AdamW kernel per unit, whatever the
// strategy makes of them later.
#include "compiler/optimizer/passes.h"

#include "dialects/ft/dialect.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace ft::compiler {

#define GEN_PASS_DEF_INSERTOPTIMIZERPASS
#include "compiler/optimizer/passes.h.inc"

namespace {

using namespace mlir;
using mlir::ft::AdamwOp;
using mlir::ft::ClipCoefficientOp;
using mlir::ft::InitOp;
using mlir::ft::InputOp;
using mlir::ft::PackOp;
using mlir::ft::ParameterOp;
using mlir::ft::SumSquaresOp;

// begin, end, decays (0 or 1) of each parameter of the unit, in order.
SmallVector<int64_t> segmentsOf(PackOp pack, SymbolTable &symbols) {
  SmallVector<int64_t> segments;
  for (auto name : pack.getParameters().getAsRange<FlatSymbolRefAttr>()) {
    auto parameter = symbols.lookup<ParameterOp>(name.getValue());
    int64_t begin = *parameter.getOffset();
    int64_t elements = cast<RankedTensorType>(parameter.getType()).getNumElements();
    segments.append({begin, begin + elements, parameter.getNoDecay() ? 0 : 1});
  }
  return segments;
}

void makeInit(ModuleOp module, func::FuncOp train) {
  OpBuilder builder(module.getContext());
  builder.setInsertionPoint(train);
  auto init = func::FuncOp::create(builder, module.getLoc(), mlir::ft::kInitFunction,
                                   builder.getFunctionType({}, {}));
  builder.setInsertionPointToStart(init.addEntryBlock());
  Location loc = module.getLoc();
  Value rng =
      InputOp::create(builder, loc, RankedTensorType::get({3}, builder.getI64Type()), mlir::ft::kRngInput);
  int64_t stream = 0;
  for (ParameterOp parameter : module.getOps<ParameterOp>()) {
    auto op = InitOp::create(builder, parameter.getLoc(), parameter.getSymName(), rng, stream++);
    mlir::ft::setPhase(op, "init");
  }
  func::ReturnOp::create(builder, loc);
}

struct InsertOptimizerPass : impl::InsertOptimizerPassBase<InsertOptimizerPass> {
  using InsertOptimizerPassBase::InsertOptimizerPassBase;

  // Returns the gradient norm.
  Value insertSteps(OpBuilder &builder, MutableArrayRef<PackOp> packs, SymbolTable &symbols) {
    Location loc = packs.front().getLoc();
    auto scalar = RankedTensorType::get({}, builder.getF32Type());
    auto words = RankedTensorType::get({mlir::ft::kAccumulatorWords}, builder.getI64Type());
    auto optimizer = [](Operation *op) { mlir::ft::setPhase(op, mlir::ft::kPhaseOptimizer); };
    auto number = [&](double value) { return builder.getF64FloatAttr(value); };
    Value sum;
    for (PackOp pack : packs) {
      auto op = SumSquaresOp::create(builder, pack.getLoc(), words, pack.getFlat(), sum);
      optimizer(op);
      sum = op.getSum();
    }
    auto coefficient = ClipCoefficientOp::create(builder, loc, scalar, scalar, sum, number(clip));
    optimizer(coefficient);
    Value lr = InputOp::create(builder, loc, scalar, mlir::ft::kLrInput);
    Value step =
        InputOp::create(builder, loc, RankedTensorType::get({}, builder.getI64Type()), mlir::ft::kStepInput);
    for (PackOp pack : packs) {
      auto unit = cast<mlir::ft::FlatType>(pack.getFlat().getType()).getUnit();
      auto op = AdamwOp::create(builder, pack.getLoc(), unit, pack.getFlat(), coefficient.getCoefficient(),
                                lr, step, number(beta1), number(beta2), number(eps), number(weightDecay),
                                builder.getDenseI64ArrayAttr(segmentsOf(pack, symbols)));
      optimizer(op);
      mlir::ft::setLayer(op, mlir::ft::getLayer(pack));
    }
    return coefficient.getNorm();
  }

  void runOnOperation() override {
    ModuleOp module = getOperation();
    auto train = module.lookupSymbol<func::FuncOp>(mlir::ft::kTrainStepFunction);
    SmallVector<PackOp> packs;
    if (train)
      llvm::append_range(packs, train.getOps<PackOp>());
    if (packs.empty()) {
      module.emitError() << "no flat gradients in @train_step; run ft-form-units first";
      return signalPassFailure();
    }
    SymbolTable symbols(module);
    Operation *terminator = train.getBody().front().getTerminator();
    OpBuilder builder(terminator);
    Value norm = insertSteps(builder, packs, symbols);
    terminator->insertOperands(terminator->getNumOperands(), norm);
    train.setFunctionType(builder.getFunctionType(train.getArgumentTypes(), terminator->getOperandTypes()));
    makeInit(module, train);
  }
};

} // namespace
} // namespace ft::compiler
