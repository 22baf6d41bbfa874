// Appends clipping and the optimizer to @train_step and makes @init.
//
// Enters: units formed, one ft.pack per trained unit. Leaves: see passes.td. The optimizer works on flat
// gradients, so units are formed before it: one norm kernel and one update per unit, whatever the strategy
// makes of them later.
#include "compiler/optimizer/passes.h"
#include "compiler/optimizer/update_body.h"
#include "compiler/optimizer/whole_step.h"

#include "dialects/ft/dialect.h"
#include "dialects/ft/elementwise.h"
#include "runtime/base/status_macros.h"
#include "runtime/base/step_scalar_formulas.h"
#include "llvm/ADT/MapVector.h"

namespace ft::compiler {

#define GEN_PASS_DEF_INSERTOPTIMIZERPASS
#include "compiler/optimizer/passes.h.inc"

namespace {

using namespace mlir;
using mlir::ft::ClipCoefficientOp;
using mlir::ft::CountedMeanOp;
using mlir::ft::CountTargetsOp;
using mlir::ft::FlatType;
using mlir::ft::InitOp;
using mlir::ft::InputOp;
using mlir::ft::MulOp;
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
    gradients.push_back({pack, mlir::ft::sumOverMicroSteps(pack.getFlat())});
  }
  return gradients;
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
  for (ParameterOp parameter : module.getOps<ParameterOp>()) {
    auto op = InitOp::create(builder, parameter.getLoc(), parameter.getSymName(), rng);
    mlir::ft::setPhase(op, "init");
  }
  func::ReturnOp::create(builder, loc);
}

// The input `name`, null where the block has none.
InputOp findInput(Block *block, StringRef name) {
  for (InputOp input : block->getOps<InputOp>())
    if (input.getName() == name)
      return input;
  return {};
}

// At the beginning of the block.
Value findOrMakeInput(Block *block, StringRef name, RankedTensorType type) {
  if (InputOp input = findInput(block, name)) {
    input->moveBefore(&block->front());
    return input.getValue();
  }
  OpBuilder builder = OpBuilder::atBlockBegin(block);
  return InputOp::create(builder, block->getParentOp()->getLoc(), type, name);
}

struct InsertOptimizerPass : impl::InsertOptimizerPassBase<InsertOptimizerPass> {
  using InsertOptimizerPassBase::InsertOptimizerPassBase;

  // A body of a rule, and what the updates of all units read.
  struct Stage {
    explicit Stage(UpdateBody body) : body(std::move(body)) {}
    UpdateBody body;
    FlatSymbolRefAttr symbol;
    ArrayAttr states;
    Value scalars;
  };

  // A row of the table as it updates units.
  struct Rule {
    std::optional<Stage> direction; // of one that looks at parameters whole
    std::optional<WholeStep> whole;
    Value wholeScalars;
    std::optional<Stage> update;
  };

  // By name, in the order of the units.
  using Rules = llvm::MapVector<StringRef, Rule>;

  static FloatAttr number(OpBuilder &builder, double value) { return builder.getF64FloatAttr(value); }

  // An update of the parameters of `pack`, by what comes from their gradients; or, with a type, of their
  // direction.
  UpdateOp insertUpdate(OpBuilder &builder, PackOp pack, Value flat, const Stage &stage, ValueRange rounding,
                        Type direction) {
    auto op = UpdateOp::create(builder, pack.getLoc(), direction ? TypeRange(direction) : TypeRange(),
                               cast<FlatType>(flat.getType()).getUnit(), stage.symbol, flat, stage.scalars,
                               rounding, stage.states);
    tag(op, pack);
    return op;
  }

  static void tag(Operation *op, PackOp pack) {
    mlir::ft::setPhase(op, mlir::ft::kPhaseOptimizer);
    mlir::ft::setLayer(op, mlir::ft::getLayer(pack));
  }

  LogicalResult insertStep(OpBuilder &builder, Gradient gradient, ValueRange rounding, Rule &rule,
                           SymbolTable &symbols) {
    Value flat = gradient.flat;
    if (rule.whole) {
      UpdateOp first =
          insertUpdate(builder, gradient.pack, flat, *rule.direction, /*rounding=*/{}, flat.getType());
      absl::StatusOr<Value> whole =
          rule.whole->insert(builder, gradient.pack, first.getDirection(), rule.wholeScalars, symbols);
      if (!whole.ok())
        return first.emitError() << std::string(whole.status().message());
      flat = *whole;
      for (Operation &op : llvm::make_range(std::next(first->getIterator()), builder.getInsertionPoint()))
        tag(&op, gradient.pack);
    }
    insertUpdate(builder, gradient.pack, flat, *rule.update, rounding, Type());
    return success();
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

  // What makes means of sums over ranks, and which of them it is to make.
  struct Averaging {
    Value inverseRanks;
    Reduced gradients; // the mean: backward begins with that

    Value ofGradients() const { return gradients == Reduced::sum ? inverseRanks : Value(); }
  };

  static Averaging averagingOf(Block *block) {
    if (InputOp seed = findInput(block, mlir::ft::kInverseRanksInput); seed && !seed->use_empty())
      return {seed.getValue(), Reduced::mean};
    auto scalar = RankedTensorType::get({}, Float32Type::get(block->getParentOp()->getContext()));
    return {findOrMakeInput(block, mlir::ft::kInverseRanksInput, scalar), Reduced::sum};
  }

  // Of the losses of all ranks.
  static Value insertMean(OpBuilder &builder, Value loss, const Averaging &averaging) {
    auto mean = MulOp::create(builder, loss.getLoc(), ValueRange{loss, averaging.inverseRanks});
    mlir::ft::setPhase(mean, mlir::ft::kPhaseOptimizer);
    return mean;
  }

  // Of a loss that counts targets: what it is over all of them. Null for others.
  static CountedMeanOp insertCountedMean(OpBuilder &builder, Value loss) {
    for (CountTargetsOp op : builder.getInsertionBlock()->getOps<CountTargetsOp>()) {
      Value count = mlir::ft::sumOverMicroSteps(op.getCount());
      auto mean = CountedMeanOp::create(builder, loss.getLoc(), loss.getType(), loss.getType(), count, loss);
      mlir::ft::setPhase(mean, mlir::ft::kPhaseOptimizer);
      return mean;
    }
    return {};
  }

  // The sum of the squares of all gradients.
  static Value insertSum(OpBuilder &builder, ArrayRef<Gradient> gradients, const Averaging &averaging) {
    auto words = RankedTensorType::get({mlir::ft::kAccumulatorWords}, builder.getI64Type());
    Value sum;
    for (Gradient gradient : gradients) {
      auto op = SumSquaresOp::create(builder, gradient.pack.getLoc(), words, gradient.flat,
                                     averaging.ofGradients(), sum);
      mlir::ft::setPhase(op, mlir::ft::kPhaseOptimizer);
      sum = op.getSum();
    }
    return sum;
  }

  // The norm and the coefficient.
  ClipCoefficientOp insertNorm(OpBuilder &builder, Value loss, Value sum, Value scaler, Value factor) {
    auto scalar = RankedTensorType::get({}, builder.getF32Type());
    auto norm = ClipCoefficientOp::create(builder, loss.getLoc(), scalar, scalar, sum, loss, scaler, factor,
                                          number(builder, clip));
    mlir::ft::setPhase(norm, mlir::ft::kPhaseOptimizer);
    return norm;
  }

  struct StepInputs {
    Value coefficient, lr, step, inverseRanks;
  };

  // The numbers of a step that `formulas` name.
  Value insertScalars(OpBuilder &builder, const StepInputs &inputs, StringRef formulas) {
    const StepScalars read = *ReadStepScalars(formulas, 0);
    auto type = RankedTensorType::get({2, read.count}, builder.getF32Type());
    auto op =
        UpdateScalarsOp::create(builder, inputs.coefficient.getLoc(), type, inputs.coefficient, inputs.lr,
                                inputs.step, UsesInverseRanks(read) ? inputs.inverseRanks : Value(),
                                builder.getStringAttr(formulas), number(builder, weightDecay));
    mlir::ft::setPhase(op, mlir::ft::kPhaseOptimizer);
    return op.getScalars();
  }

  // Gives the rules what they read. Returns what stochastic rounding reads, empty where there is none.
  SmallVector<Value> insertShared(OpBuilder &builder, ClipCoefficientOp norm, Value inverseRanks,
                                  Rules &rules, SymbolTable &symbols) {
    Location loc = norm.getLoc();
    auto scalar = RankedTensorType::get({}, builder.getF32Type());
    const StepInputs inputs = {
        norm.getCoefficient(), InputOp::create(builder, loc, scalar, mlir::ft::kLrInput),
        InputOp::create(builder, loc, scalar.clone(builder.getI64Type()), mlir::ft::kStepInput),
        inverseRanks};
    SmallVector<Value> rounding;
    if (stochasticRounding)
      rounding = {findOrMakeRng(builder), inputs.step};
    const auto place = [&](Stage &stage) {
      func::FuncOp function = stage.body.function.release();
      symbols.insert(function, builder.getInsertionBlock()->getParentOp()->getIterator());
      stage.symbol = FlatSymbolRefAttr::get(function.getSymNameAttr());
      SmallVector<StringRef> states(stage.body.states.begin(), stage.body.states.end());
      stage.states = builder.getStrArrayAttr(states);
      stage.scalars = insertScalars(builder, inputs, stage.body.scalars);
    };
    for (auto &[name, rule] : rules) {
      if (rule.direction)
        place(*rule.direction);
      if (rule.whole && !rule.whole->orthogonalizes())
        rule.wholeScalars = insertScalars(builder, inputs, rule.whole->scalars());
      place(*rule.update);
    }
    return rounding;
  }

  // Returns what @train_step returns.
  FailureOr<SmallVector<Value>> insertSteps(OpBuilder &builder, Value loss, ArrayRef<Gradient> gradients,
                                            const Averaging &averaging, Rules &rules, SymbolTable &symbols) {
    Location loc = loss.getLoc();
    InputOp scalerInput = findInput(builder.getInsertionBlock(), mlir::ft::kScalerInput);
    Value scaler = scalerInput ? scalerInput.getValue() : Value();
    loss = insertMean(builder, loss, averaging);
    Value sum = insertSum(builder, gradients, averaging);
    CountedMeanOp counted = insertCountedMean(builder, loss);
    Value factor = counted ? counted.getFactor() : Value();
    ClipCoefficientOp norm = insertNorm(builder, loss, sum, scaler, factor);
    SmallVector<Value> rounding = insertShared(builder, norm, averaging.inverseRanks, rules, symbols);
    for (Gradient gradient : gradients)
      if (failed(insertStep(builder, gradient, rounding, rules[ruleOf(gradient, symbols)], symbols)))
        return failure();
    if (scaler) {
      auto op = UpdateScalerOp::create(
          builder, loc, scaler, norm.getCoefficient(), factor, number(builder, 2.0), number(builder, 0.5),
          builder.getI64IntegerAttr(lossScaleWindow), builder.getI64IntegerAttr(hysteresis),
          number(builder, minLossScale), builder.getI64IntegerAttr(dynamicScale ? 1 : 0));
      mlir::ft::setPhase(op, mlir::ft::kPhaseOptimizer);
    }
    SmallVector<Value> results = {loss, norm.getNorm()};
    if (counted) {
      results.front() = counted.getMean();
      results.push_back(counted.getCount());
    }
    return results;
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
    SymbolTable symbols(module);
    const Averaging averaging = averagingOf(&train.getBody().front());
    Rules rules;
    for (Gradient gradient : gradients) {
      StringRef name = ruleOf(gradient, symbols);
      if (rules.contains(name))
        continue;
      absl::StatusOr<Rule> rule = makeRule(name, averaging.gradients);
      if (!rule.ok()) {
        module.emitError() << std::string(rule.status().message());
        return signalPassFailure();
      }
      rules[name] = *std::move(rule);
    }
    Operation *terminator = train.getBody().front().getTerminator();
    OpBuilder builder(terminator);
    FailureOr<SmallVector<Value>> inserted =
        insertSteps(builder, terminator->getOperand(0), gradients, averaging, rules, symbols);
    if (failed(inserted))
      return signalPassFailure();
    terminator->setOperands(*inserted);
    train.setFunctionType(builder.getFunctionType(train.getArgumentTypes(), terminator->getOperandTypes()));
    makeInit(module, train);
  }

  absl::StatusOr<Rule> makeRule(StringRef name, Reduced gradients) {
    const OptimizerRule *row = findOptimizerRule(name);
    if (!row)
      return absl::InvalidArgumentError("unknown optimizer '" + name.str() + "'; one of " + optimizerNames());
    const Hyperparameters all = hyperparametersOf({.beta1 = beta1,
                                                   .beta2 = beta2,
                                                   .eps = eps,
                                                   .weightDecay = weightDecay,
                                                   .momentum = momentum,
                                                   .nesterov = nesterov,
                                                   .beta2Decay = beta2Decay,
                                                   .eps2 = eps2,
                                                   .clipThreshold = clipThreshold,
                                                   .scaleParameter = scaleParameter});
    FT_RETURN_IF_ERROR(checkHyperparameters(*row, all));
    FT_ASSIGN_OR_RETURN(const Update update, row->update(all));
    Rule rule;
    if (update.looksAtWhole()) {
      FT_ASSIGN_OR_RETURN(UpdateBody direction,
                          makeDirectionBody(getContext(), row->name, update, all, gradients));
      rule.direction.emplace(std::move(direction));
      FT_ASSIGN_OR_RETURN(rule.whole, WholeStep::create(row->name, update, all));
    }
    FT_ASSIGN_OR_RETURN(UpdateBody body, makeUpdateBody(getContext(), row->name, update, all, gradients));
    rule.update.emplace(std::move(body));
    return rule;
  }
};

} // namespace
} // namespace ft::compiler
