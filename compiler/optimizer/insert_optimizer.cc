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
#include "llvm/ADT/MapVector.h"
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
using mlir::ft::OrthogonalizeOp;
using mlir::ft::PackOp;
using mlir::ft::ParameterOp;
using mlir::ft::SumSquaresOp;
using mlir::ft::UnitOp;
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

  // What the updates of all units of a rule read.
  struct Stage {
    FlatSymbolRefAttr body;
    ArrayAttr states;
    Value scalars;
  };

  // The bodies of each rule that a unit has, in the order of the units.
  using Bodies = llvm::MapVector<StringRef, std::vector<UpdateBody>>;

  // What all updates read.
  struct Shared {
    llvm::StringMap<SmallVector<Stage>> stages; // by rule
    SmallVector<Value> rounding;                // empty: the optimizer rounds to nearest
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

  // An update of the parameters of `pack`, by what comes from their gradients; or, with a type, of their
  // direction.
  UpdateOp insertUpdate(OpBuilder &builder, PackOp pack, Value flat, const Stage &stage, ValueRange rounding,
                        Type direction, SymbolTable &symbols) {
    auto op =
        UpdateOp::create(builder, pack.getLoc(), direction ? TypeRange(direction) : TypeRange(),
                         cast<FlatType>(flat.getType()).getUnit(), stage.body, flat, stage.scalars, rounding,
                         stage.states, builder.getDenseI64ArrayAttr(segmentsOf(pack, symbols)),
                         rounding.empty() ? DenseI64ArrayAttr() : roundingOf(builder, pack));
    tag(op, pack);
    return op;
  }

  static void tag(Operation *op, PackOp pack) {
    mlir::ft::setPhase(op, mlir::ft::kPhaseOptimizer);
    mlir::ft::setLayer(op, mlir::ft::getLayer(pack));
  }

  void insertStep(OpBuilder &builder, Gradient gradient, const Shared &shared, SymbolTable &symbols) {
    const SmallVector<Stage> &stages = shared.stages.find(ruleOf(gradient, symbols))->second;
    Value flat = gradient.flat;
    if (stages.size() > 1) {
      UpdateOp first =
          insertUpdate(builder, gradient.pack, flat, stages[0], /*rounding=*/{}, flat.getType(), symbols);
      auto whole = OrthogonalizeOp::create(builder, gradient.pack.getLoc(), flat.getType(),
                                           first.getDirection(), gradient.pack.getParameters());
      tag(whole, gradient.pack);
      flat = whole.getResult();
    }
    insertUpdate(builder, gradient.pack, flat, stages.back(), shared.rounding, Type(), symbols);
  }

  // The row of the table that updates a unit.
  StringRef ruleOf(Gradient gradient, SymbolTable &symbols) {
    auto unit = symbols.lookup<UnitOp>(cast<FlatType>(gradient.flat.getType()).getUnit().getValue());
    if (std::optional<StringRef> rule = unit.getRule())
      return *rule;
    const OptimizerRule *rule = findOptimizerRule(optimizer.getValue());
    return rule && !rule->others.empty() ? StringRef(rule->others) : StringRef(optimizer);
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

  Shared insertShared(OpBuilder &builder, ClipCoefficientOp norm, Bodies &bodies, SymbolTable &symbols) {
    Location loc = norm.getLoc();
    auto scalar = RankedTensorType::get({}, builder.getF32Type());
    Value lr = InputOp::create(builder, loc, scalar, mlir::ft::kLrInput);
    Value step = InputOp::create(builder, loc, scalar.clone(builder.getI64Type()), mlir::ft::kStepInput);
    Shared shared;
    if (stochasticRounding)
      shared.rounding = {findOrMakeRng(builder), step};
    for (auto &[rule, stages] : bodies)
      for (UpdateBody &body : stages) {
        int64_t formulas = ReadStepScalars(body.scalars, 0)->count;
        auto op =
            UpdateScalarsOp::create(builder, loc, scalar.clone({2, formulas}), norm.getCoefficient(), lr,
                                    step, builder.getStringAttr(body.scalars), number(builder, weightDecay));
        mlir::ft::setPhase(op, mlir::ft::kPhaseOptimizer);
        SmallVector<StringRef> states(body.states.begin(), body.states.end());
        func::FuncOp function = body.function.release();
        symbols.insert(function, builder.getInsertionBlock()->getParentOp()->getIterator());
        shared.stages[rule].push_back({FlatSymbolRefAttr::get(function.getSymNameAttr()),
                                       builder.getStrArrayAttr(states), op.getScalars()});
      }
    return shared;
  }

  // Returns what @train_step returns besides the loss.
  SmallVector<Value> insertSteps(OpBuilder &builder, Value loss, ArrayRef<Gradient> gradients, Bodies &bodies,
                                 SymbolTable &symbols) {
    Location loc = loss.getLoc();
    Value scaler;
    for (InputOp input : builder.getInsertionBlock()->getOps<InputOp>())
      if (input.getName() == mlir::ft::kScalerInput)
        scaler = input.getValue();
    Value foundInf = insertFoundInf(builder, loss, gradients);
    ClipCoefficientOp norm = insertNorm(builder, loss, scaler, gradients);
    Shared shared = insertShared(builder, norm, bodies, symbols);
    for (Gradient gradient : gradients)
      insertStep(builder, gradient, shared, symbols);
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
    parameterStreams = streamsOf(module);
    SymbolTable symbols(module);
    Bodies bodies;
    for (Gradient gradient : gradients) {
      StringRef rule = ruleOf(gradient, symbols);
      if (bodies.contains(rule))
        continue;
      absl::StatusOr<std::vector<UpdateBody>> made = makeBodies(rule);
      if (!made.ok()) {
        module.emitError() << std::string(made.status().message());
        return signalPassFailure();
      }
      bodies[rule] = *std::move(made);
    }
    Operation *terminator = train.getBody().front().getTerminator();
    OpBuilder builder(terminator);
    SmallVector<Value> results = insertSteps(builder, terminator->getOperand(0), gradients, bodies, symbols);
    terminator->insertOperands(terminator->getNumOperands(), results);
    train.setFunctionType(builder.getFunctionType(train.getArgumentTypes(), terminator->getOperandTypes()));
    makeInit(module, train);
  }

  absl::StatusOr<std::vector<UpdateBody>> makeBodies(StringRef name) {
    const OptimizerRule *rule = findOptimizerRule(name);
    if (!rule)
      return absl::InvalidArgumentError("unknown optimizer '" + name.str() + "'; one of " + optimizerNames());
    const Hyperparameters all = {{"beta1", beta1},       {"beta2", beta2},
                                 {"eps", eps},           {"weight_decay", weightDecay},
                                 {"momentum", momentum}, {"nesterov", nesterov ? 1.0 : 0.0}};
    FT_RETURN_IF_ERROR(checkHyperparameters(*rule, all));
    FT_ASSIGN_OR_RETURN(const Update update, rule->update(all));
    return makeUpdateBodies(getContext(), rule->name, update, all);
  }

  llvm::StringMap<int64_t> parameterStreams;
};

} // namespace
} // namespace ft::compiler
