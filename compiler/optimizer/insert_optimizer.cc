// Appends clipping and the optimizer to @train_step and makes @init.
//
// Enters: units formed, one ft.pack per trained unit. Leaves: see passes.td. The optimizer works on flat
// gradients, so units are formed before it: one norm kernel and one AdamW kernel per unit, whatever the
// strategy makes of them later.
#include "compiler/optimizer/passes.h"

#include "dialects/ft/dialect.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/StringMap.h"

namespace ft::compiler {

#define GEN_PASS_DEF_INSERTOPTIMIZERPASS
#include "compiler/optimizer/passes.h.inc"

namespace {

using namespace mlir;
using mlir::ft::AdamOp;
using mlir::ft::AdamwOp;
using mlir::ft::ClipCoefficientOp;
using mlir::ft::DrainOp;
using mlir::ft::FlatType;
using mlir::ft::HealthOp;
using mlir::ft::InitOp;
using mlir::ft::InputOp;
using mlir::ft::PackOp;
using mlir::ft::ParameterOp;
using mlir::ft::SgdOp;
using mlir::ft::SumSquaresOp;
using mlir::ft::UpdateScalerOp;

// A flat gradient, complete over micro-steps.
struct Gradient {
  PackOp pack;
  Value flat;
};

SmallVector<Gradient> gradientsOf(func::FuncOp train) {
  SmallVector<Gradient> gradients;
  for (PackOp pack : train.getOps<PackOp>()) {
    gradients.push_back({pack, pack.getFlat()});
    for (Operation *user : pack.getFlat().getUsers())
      if (auto drain = dyn_cast<DrainOp>(user))
        gradients.back().flat = drain.getResult();
  }
  return gradients;
}

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

// The place of every parameter in the module: its random stream, whatever the units.
llvm::StringMap<int64_t> streamsOf(ModuleOp module) {
  llvm::StringMap<int64_t> streams;
  for (ParameterOp parameter : module.getOps<ParameterOp>())
    streams.try_emplace(parameter.getSymName(), streams.size());
  return streams;
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
  const llvm::StringMap<int64_t> streams = streamsOf(module);
  for (ParameterOp parameter : module.getOps<ParameterOp>()) {
    StringRef name = parameter.getSymName();
    auto op = InitOp::create(builder, parameter.getLoc(), name, rng, streams.lookup(name));
    mlir::ft::setPhase(op, "init");
  }
  func::ReturnOp::create(builder, loc);
}

// The input `name`, at the beginning of the block.
Value findOrMakeInput(Block *block, StringRef name, RankedTensorType type) {
  for (InputOp input : block->getOps<InputOp>()) {
    if (input.getName() != name)
      continue;
    input->moveBefore(&block->front());
    return input.getValue();
  }
  OpBuilder builder = OpBuilder::atBlockBegin(block);
  return InputOp::create(builder, block->getParentOp()->getLoc(), type, name);
}

struct InsertOptimizerPass : impl::InsertOptimizerPassBase<InsertOptimizerPass> {
  using InsertOptimizerPassBase::InsertOptimizerPassBase;

  struct Scalars {
    Value coefficient, lr, step;
    Value rng; // null: the optimizer rounds to nearest
  };

  static FloatAttr number(OpBuilder &builder, double value) { return builder.getF64FloatAttr(value); }

  // The stream of each segment of the unit's step; null when it rounds to nearest.
  DenseI64ArrayAttr roundingOf(OpBuilder &builder, PackOp pack) {
    if (!stochasticRounding)
      return {};
    SmallVector<int64_t> streams;
    for (auto name : pack.getParameters().getAsRange<FlatSymbolRefAttr>())
      streams.push_back(parameterStreams.lookup(name.getValue()));
    return builder.getDenseI64ArrayAttr(streams);
  }

  Operation *insertStep(OpBuilder &builder, Gradient gradient, const Scalars &s, SymbolTable &symbols) {
    Location loc = gradient.pack.getLoc();
    FlatSymbolRefAttr unit = cast<FlatType>(gradient.flat.getType()).getUnit();
    auto segments = builder.getDenseI64ArrayAttr(segmentsOf(gradient.pack, symbols));
    DenseI64ArrayAttr rounding = roundingOf(builder, gradient.pack);
    FloatAttr decay = number(builder, weightDecay);
    if (optimizer == "adamw")
      return AdamwOp::create(builder, loc, unit, gradient.flat, s.coefficient, s.lr, s.step, s.rng,
                             number(builder, beta1), number(builder, beta2), number(builder, eps), decay,
                             segments, rounding);
    if (optimizer == "adam")
      return AdamOp::create(builder, loc, unit, gradient.flat, s.coefficient, s.lr, s.step, s.rng,
                            number(builder, beta1), number(builder, beta2), number(builder, eps), decay,
                            segments, rounding);
    return SgdOp::create(builder, loc, unit, gradient.flat, s.coefficient, s.lr, s.step, s.rng,
                         number(builder, momentum), nesterov ? builder.getUnitAttr() : UnitAttr(), decay,
                         segments, rounding);
  }

  static Value findOrMakeRng(OpBuilder &builder) {
    auto type = RankedTensorType::get({3}, builder.getI64Type());
    return findOrMakeInput(builder.getInsertionBlock(), mlir::ft::kRngInput, type);
  }

  // The bitmap of ranks that have something that is not finite, of this rank alone so far.
  static Value insertHealth(OpBuilder &builder, Value loss, ArrayRef<Gradient> gradients) {
    auto words = RankedTensorType::get({mlir::ft::kHealthWords}, builder.getI64Type());
    Value rng = findOrMakeRng(builder);
    Value bitmap;
    for (Gradient gradient : gradients) {
      OpBuilder behind(builder.getContext());
      behind.setInsertionPointAfterValue(gradient.flat);
      auto op = HealthOp::create(behind, gradient.pack.getLoc(), words, gradient.flat, rng, bitmap);
      mlir::ft::setPhase(op, mlir::ft::kPhaseOptimizer);
      bitmap = op.getBitmap();
    }
    auto op = HealthOp::create(builder, loss.getLoc(), words, loss, rng, bitmap);
    mlir::ft::setPhase(op, mlir::ft::kPhaseOptimizer);
    return op.getBitmap();
  }

  // The norm and the coefficient.
  ClipCoefficientOp insertNorm(OpBuilder &builder, Value loss, Value scaler, ArrayRef<Gradient> gradients) {
    auto scalar = RankedTensorType::get({}, builder.getF32Type());
    auto words = RankedTensorType::get({mlir::ft::kAccumulatorWords}, builder.getI64Type());
    Value sum;
    for (Gradient gradient : gradients) {
      auto op = SumSquaresOp::create(builder, gradient.pack.getLoc(), words, gradient.flat, sum);
      mlir::ft::setPhase(op, mlir::ft::kPhaseOptimizer);
      sum = op.getSum();
    }
    auto norm = ClipCoefficientOp::create(builder, loss.getLoc(), scalar, scalar, sum, loss, scaler,
                                          number(builder, clip));
    mlir::ft::setPhase(norm, mlir::ft::kPhaseOptimizer);
    return norm;
  }

  // Returns what @train_step returns besides the loss.
  SmallVector<Value> insertSteps(OpBuilder &builder, Value loss, ArrayRef<Gradient> gradients,
                                 SymbolTable &symbols) {
    auto scalar = RankedTensorType::get({}, builder.getF32Type());
    Location loc = loss.getLoc();
    Value scaler;
    for (InputOp input : builder.getInsertionBlock()->getOps<InputOp>())
      if (input.getName() == mlir::ft::kScalerInput)
        scaler = input.getValue();
    Value health = insertHealth(builder, loss, gradients);
    ClipCoefficientOp norm = insertNorm(builder, loss, scaler, gradients);
    Scalars scalars;
    scalars.coefficient = norm.getCoefficient();
    scalars.lr = InputOp::create(builder, loc, scalar, mlir::ft::kLrInput);
    scalars.step =
        InputOp::create(builder, loc, RankedTensorType::get({}, builder.getI64Type()), mlir::ft::kStepInput);
    if (stochasticRounding)
      scalars.rng = findOrMakeRng(builder);
    for (Gradient gradient : gradients) {
      Operation *op = insertStep(builder, gradient, scalars, symbols);
      mlir::ft::setPhase(op, mlir::ft::kPhaseOptimizer);
      mlir::ft::setLayer(op, mlir::ft::getLayer(gradient.pack));
    }
    if (scaler) {
      auto op = UpdateScalerOp::create(builder, loc, scaler, norm.getCoefficient(), number(builder, 2.0),
                                       number(builder, 0.5), builder.getI64IntegerAttr(lossScaleWindow),
                                       builder.getI64IntegerAttr(hysteresis), number(builder, minLossScale),
                                       builder.getI64IntegerAttr(dynamicScale ? 1 : 0));
      mlir::ft::setPhase(op, mlir::ft::kPhaseOptimizer);
    }
    return {norm.getNorm(), health};
  }

  void runOnOperation() override {
    ModuleOp module = getOperation();
    auto train = module.lookupSymbol<func::FuncOp>(mlir::ft::kTrainStepFunction);
    SmallVector<Gradient> gradients;
    if (train)
      gradients = gradientsOf(train);
    if (gradients.empty()) {
      module.emitError() << "no flat gradients in @train_step; run ft-form-units first";
      return signalPassFailure();
    }
    if (optimizer != "adamw" && optimizer != "adam" && optimizer != "sgd") {
      module.emitError() << "unknown optimizer '" << optimizer << "'; one of adamw, adam, sgd";
      return signalPassFailure();
    }
    parameterStreams = streamsOf(module);
    SymbolTable symbols(module);
    Operation *terminator = train.getBody().front().getTerminator();
    OpBuilder builder(terminator);
    SmallVector<Value> results = insertSteps(builder, terminator->getOperand(0), gradients, symbols);
    terminator->insertOperands(terminator->getNumOperands(), results);
    train.setFunctionType(builder.getFunctionType(train.getArgumentTypes(), terminator->getOperandTypes()));
    makeInit(module, train);
  }

  llvm::StringMap<int64_t> parameterStreams;
};

} // namespace
} // namespace ft::compiler
