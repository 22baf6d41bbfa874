// Appends clipping and the optimizer to @train_step and makes @init.
//
// Enters: units formed, one ft.pack per trained unit. Leaves: see passes.td. The optimizer works on flat
// gradients, so units are formed before it: one norm kernel and one update per unit, whatever the strategy
// makes of them later.
#include "compiler/optimizer/passes.h"
#include "compiler/optimizer/update_body.h"

#include "dialects/ft/dialect.h"
#include "runtime/base/status_macros.h"
#include "runtime/base/step_scalar_formulas.h"
#include "llvm/ADT/StringMap.h"

namespace ft::compiler {

#define GEN_PASS_DEF_INSERTOPTIMIZERPASS
#include "compiler/optimizer/passes.h.inc"

namespace {

using namespace mlir;
using mlir::ft::AccumulatedOp;
using mlir::ft::ClipCoefficientOp;
using mlir::ft::FlatType;
using mlir::ft::FoundInfOp;
using mlir::ft::InitOp;
using mlir::ft::InputOp;
using mlir::ft::PackOp;
using mlir::ft::ParameterOp;
using mlir::ft::SumSquaresOp;
using mlir::ft::UpdateOp;
using mlir::ft::UpdateScalarsOp;
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
      if (auto accumulated = dyn_cast<AccumulatedOp>(user))
        gradients.back().flat = accumulated.getResult();
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

  // Of the optimizer asked for.
  struct Made {
    Update update;
    UpdateBody body;
  };

  // What all steps read.
  struct Shared {
    FlatSymbolRefAttr body;
    ArrayAttr states;
    Value scalars;
    SmallVector<Value> rounding; // empty: the optimizer rounds to nearest
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

  UpdateOp insertStep(OpBuilder &builder, Gradient gradient, const Shared &shared, SymbolTable &symbols) {
    return UpdateOp::create(
        builder, gradient.pack.getLoc(), cast<FlatType>(gradient.flat.getType()).getUnit(), shared.body,
        gradient.flat, shared.scalars, shared.rounding, shared.states,
        builder.getDenseI64ArrayAttr(segmentsOf(gradient.pack, symbols)), roundingOf(builder, gradient.pack));
  }

  static Value findOrMakeRng(OpBuilder &builder) {
    auto type = RankedTensorType::get({3}, builder.getI64Type());
    return findOrMakeInput(builder.getInsertionBlock(), mlir::ft::kRngInput, type);
  }

  // The bitmap of ranks that have something that is not finite, of this rank alone so far.
  static Value insertFoundInf(OpBuilder &builder, Value loss, ArrayRef<Gradient> gradients) {
    auto words = RankedTensorType::get({mlir::ft::kFoundInfWords}, builder.getI64Type());
    Value rng = findOrMakeRng(builder);
    Value bitmap;
    for (Gradient gradient : gradients) {
      OpBuilder behind(builder.getContext());
      behind.setInsertionPointAfterValue(gradient.flat);
      auto op = FoundInfOp::create(behind, gradient.pack.getLoc(), words, gradient.flat, rng, bitmap);
      mlir::ft::setPhase(op, mlir::ft::kPhaseOptimizer);
      bitmap = op.getBitmap();
    }
    auto op = FoundInfOp::create(builder, loss.getLoc(), words, loss, rng, bitmap);
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

  Shared insertShared(OpBuilder &builder, ClipCoefficientOp norm, Made &made, SymbolTable &symbols) {
    Location loc = norm.getLoc();
    auto scalar = RankedTensorType::get({}, builder.getF32Type());
    Value lr = InputOp::create(builder, loc, scalar, mlir::ft::kLrInput);
    Value step = InputOp::create(builder, loc, scalar.clone(builder.getI64Type()), mlir::ft::kStepInput);
    int64_t formulas = ReadStepScalars(made.body.scalars, 0)->count;
    auto op =
        UpdateScalarsOp::create(builder, loc, scalar.clone({2, formulas}), norm.getCoefficient(), lr, step,
                                builder.getStringAttr(made.body.scalars), number(builder, weightDecay));
    mlir::ft::setPhase(op, mlir::ft::kPhaseOptimizer);
    Shared shared;
    shared.scalars = op.getScalars();
    SmallVector<StringRef> states(made.update.states.begin(), made.update.states.end());
    shared.states = builder.getStrArrayAttr(states);
    if (stochasticRounding)
      shared.rounding = {findOrMakeRng(builder), step};
    func::FuncOp function = made.body.function.release();
    symbols.insert(function, builder.getInsertionBlock()->getParentOp()->getIterator());
    shared.body = FlatSymbolRefAttr::get(function.getSymNameAttr());
    return shared;
  }

  // Returns what @train_step returns besides the loss.
  SmallVector<Value> insertSteps(OpBuilder &builder, Value loss, ArrayRef<Gradient> gradients, Made &made,
                                 SymbolTable &symbols) {
    Location loc = loss.getLoc();
    Value scaler;
    for (InputOp input : builder.getInsertionBlock()->getOps<InputOp>())
      if (input.getName() == mlir::ft::kScalerInput)
        scaler = input.getValue();
    Value foundInf = insertFoundInf(builder, loss, gradients);
    ClipCoefficientOp norm = insertNorm(builder, loss, scaler, gradients);
    Shared shared = insertShared(builder, norm, made, symbols);
    for (Gradient gradient : gradients) {
      UpdateOp op = insertStep(builder, gradient, shared, symbols);
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
    return {norm.getNorm(), foundInf};
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
    absl::StatusOr<Made> made = makeBody();
    if (!made.ok()) {
      module.emitError() << std::string(made.status().message());
      return signalPassFailure();
    }
    parameterStreams = streamsOf(module);
    SymbolTable symbols(module);
    Operation *terminator = train.getBody().front().getTerminator();
    OpBuilder builder(terminator);
    SmallVector<Value> results = insertSteps(builder, terminator->getOperand(0), gradients, *made, symbols);
    terminator->insertOperands(terminator->getNumOperands(), results);
    train.setFunctionType(builder.getFunctionType(train.getArgumentTypes(), terminator->getOperandTypes()));
    makeInit(module, train);
  }

  absl::StatusOr<Made> makeBody() {
    const OptimizerRule *rule = findOptimizerRule(optimizer.getValue());
    if (!rule)
      return absl::InvalidArgumentError("unknown optimizer '" + optimizer + "'; one of " + optimizerNames());
    const Hyperparameters all = {{"beta1", beta1},       {"beta2", beta2},
                                 {"eps", eps},           {"weight_decay", weightDecay},
                                 {"momentum", momentum}, {"nesterov", nesterov ? 1.0 : 0.0}};
    FT_RETURN_IF_ERROR(checkHyperparameters(*rule, all));
    Made made;
    FT_ASSIGN_OR_RETURN(made.update, rule->update(all));
    FT_ASSIGN_OR_RETURN(made.body, makeUpdateBody(getContext(), rule->name, made.update, all));
    return made;
  }

  llvm::StringMap<int64_t> parameterStreams;
};

} // namespace
} // namespace ft::compiler
