// Gives floats their types.
//
// Enters: functions after the shard stage, all f32. Leaves: see passes.td. Refused: unknown types, parameters
// that are read by ft.get still.
#include "compiler/precision/passes.h"

#include "compiler/precision/element_types.h"
#include "compiler/precision/gradient_ops.h"
#include "dialects/ft/signature.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/TypeSwitch.h"

namespace ft::compiler {

#define GEN_PASS_DEF_APPLYPRECISIONPASS
#include "compiler/precision/passes.h.inc"

namespace {

using namespace mlir;
using mlir::ft::AccumulatedOp;
using mlir::ft::AllReduceOp;
using mlir::ft::CollectOp;
using mlir::ft::CopyOp;
using mlir::ft::ElementRole;
using mlir::ft::FetchOp;
using mlir::ft::Gathered;
using mlir::ft::GatherOp;
using mlir::ft::GetOp;
using mlir::ft::HostParts;
using mlir::ft::HostType;
using mlir::ft::OffloadOp;
using mlir::ft::PackOp;
using mlir::ft::ReduceScatterOp;
using mlir::ft::ReloadOp;
using mlir::ft::ResidencyAttr;
using mlir::ft::ShardOp;
using mlir::ft::UnitOp;
using mlir::ft::UpdateOp;
using mlir::ft::ViewOp;

// In a gather of a unit that is kept until backward the master is rounded; so nothing else is kept at rest,
// unless the host updates the master: 16 bits come up once a step. A master in the compute type is what is
// computed with.
bool wantsWorkingCopy(UnitOp unit, const ElementTypes &types) {
  if (types.master == types.compute)
    return false;
  ResidencyAttr residency = unit.residencyOrWhole();
  if (residency.isOnHost(HostParts::update) && !residency.isOnHost(HostParts::parameters))
    return true;
  return residency.getGathered() != Gathered::until_backward;
}

void tellUnit(UnitOp unit, ElementTypes types, bool hasMaster) {
  if (!hasMaster)
    types.master = types.compute;
  if (!types.compute.isF32()) {
    unit.setCompute(types.compute);
    unit.setWorkingCopy(wantsWorkingCopy(unit, types));
    if (!types.master.isF32())
      unit.setMaster(types.master);
  }
  unit.setReduce(types.reduce);
  if (!types.accumulate.isF32())
    unit.setAccumulate(types.accumulate);
}

// Those of what a function makes.
struct FunctionTypes {
  ElementTypes types;
  Type gradients; // of parameters, as backward makes them
};

// The type of a result of an op that computes.
Type computedType(OpResult result, const FunctionTypes &types, const GradientOps &gradients) {
  Type type = result.getType();
  if (!isRetyped(type) ||
      mlir::ft::elementRole(result.getOwner(), result.getResultNumber()) == ElementRole::Statistic)
    return type;
  return withElements(type, gradients.contains(result) ? types.gradients : types.types.compute);
}

// What comes of a sum over micro-steps goes into the reduction, if it does not come from there.
Type accumulatedType(AccumulatedOp op, Type reduce) {
  Type sum = op.getX().getType();
  return isa<RankedTensorType>(sum) ? sum : withElements(sum, reduce);
}

// Operands have their types already.
Type typeOf(OpResult result, const FunctionTypes &all, const GradientOps &gradients, SymbolTable &symbols) {
  Type type = result.getType();
  const ElementTypes &types = all.types;
  return TypeSwitch<Operation *, Type>(result.getOwner())
      .Case([&](ShardOp op) {
        auto unit = symbols.lookup<UnitOp>(op.getUnit());
        return withElements(type, unit.getWorkingCopy() ? types.compute : unit.masterType());
      })
      .Case<GatherOp, FetchOp, UpdateOp, CollectOp>([&](auto) { return withElements(type, types.compute); })
      .Case([&](ViewOp op) { return withElements(type, elementsOf(op.getFlat().getType())); })
      .Case([&](PackOp op) { return withElements(type, op.isOfGradients() ? all.gradients : types.compute); })
      .Case([&](ReduceScatterOp op) { return withElements(type, elementsOf(op.getFlat().getType())); })
      .Case([&](AllReduceOp op) { return op.getX().getType(); })
      .Case([&](AccumulatedOp op) { return accumulatedType(op, types.reduce); })
      .Case([&](OffloadOp op) {
        return HostType::get(op.getContext(), cast<RankedTensorType>(op.getX().getType()));
      })
      .Case([&](ReloadOp op) { return cast<HostType>(op.getThere().getType()).getTensor(); })
      .Default([&](Operation *) { return computedType(result, all, gradients); });
}

// Scalars are f32 whatever the others are: what moves one among those, or makes one of them, gets it rounded.
void roundMoved(Operation *op) {
  if (!op->hasTrait<mlir::ft::MovesElements>())
    return;
  Type element = elementsOf(op->getResult(0).getType());
  for (OpOperand &operand : op->getOpOperands()) {
    Type own = elementsOf(operand.get().getType());
    if (own == element || !isa<FloatType>(own)) // ids stay what they are
      continue;
    OpBuilder builder(op);
    auto copy =
        CopyOp::create(builder, op->getLoc(), withElements(operand.get().getType(), element), operand.get());
    copy->setDiscardableAttrs(op->getDiscardableAttrDictionary());
    copy->removeDiscardableAttr(mlir::ft::kRematAttr); // which is said of the result of op
    operand.set(copy.getResult());
  }
}

// A parameter that is a scalar has the type of its unit, and what is counted, a loss or an output, is f32.
void roundCounted(Operation *op) {
  auto count = dyn_cast<mlir::ft::LossCountOp>(op);
  if (!count || elementsOf(count.getLoss().getType()).isF32())
    return;
  OpBuilder builder(op);
  auto copy = CopyOp::create(builder, op->getLoc(),
                             withElements(count.getLoss().getType(), builder.getF32Type()), count.getLoss());
  copy->setDiscardableAttrs(op->getDiscardableAttrDictionary());
  count.getLossMutable().assign(copy.getResult());
}

// Packed values that an activation's kernel makes are rounded on their way.
void roundPacked(func::FuncOp function) {
  for (PackOp pack : function.getOps<PackOp>()) {
    Type element = elementsOf(pack.getFlat().getType());
    for (OpOperand &operand : pack->getOpOperands()) {
      Value value = operand.get();
      if (elementsOf(value.getType()) == element)
        continue;
      OpBuilder builder(pack.getContext());
      builder.setInsertionPointAfterValue(value);
      auto copy = CopyOp::create(builder, pack.getLoc(), withElements(value.getType(), element), value);
      copy->setDiscardableAttrs(pack->getDiscardableAttrDictionary());
      operand.set(copy.getResult());
    }
  }
}

// Floats that data fills have the type that the model says; they are rounded once, before all else. What the
// model itself says of numbers composites read as it is, such as the frequencies of a table of rotations.
void roundInputs(func::FuncOp function, Type compute) {
  for (BlockArgument input : function.getArguments()) {
    if (!isRetyped(input.getType()) || elementsOf(input.getType()) == compute)
      continue;
    bool isValue = mlir::ft::valueOfInput(function, input.getArgNumber()) != nullptr;
    auto isRounded = [&](Operation *user) { return !isValue || !isa<mlir::ft::CallOp>(user); };
    Operation *first = nullptr;
    for (Operation *user : input.getUsers())
      if (isRounded(user) && (!first || user->isBeforeInBlock(first)))
        first = user;
    if (!first)
      continue;
    OpBuilder builder(first);
    auto copy = CopyOp::create(builder, first->getLoc(), withElements(input.getType(), compute), input);
    copy->setDiscardableAttrs(first->getDiscardableAttrDictionary());
    copy->removeDiscardableAttr(mlir::ft::kRematAttr); // which is said of the result of first
    input.replaceUsesWithIf(copy.getResult(), [&](OpOperand &use) {
      return use.getOwner() != copy && isRounded(use.getOwner());
    });
  }
}

LogicalResult retype(func::FuncOp function, const ElementTypes &types, SymbolTable &symbols) {
  Block &block = function.getBody().front();
  roundInputs(function, types.compute);
  GradientOps gradients(block);
  Type ofGradients = types.ofGradients(function);
  for (Operation &op : block) {
    if (isa<GetOp>(op))
      return op.emitOpError("reads a parameter that has no place yet; run ft-insert-collectives first");
    for (OpResult result : op.getResults())
      result.setType(typeOf(result, {types.of(&op), ofGradients}, gradients, symbols));
    roundMoved(&op);
    roundCounted(&op);
  }
  roundPacked(function);
  OpBuilder builder(function.getContext());
  function.setFunctionType(
      builder.getFunctionType(function.getArgumentTypes(), block.getTerminator()->getOperandTypes()));
  return success();
}

bool accumulates(func::FuncOp function) { return !function.isExternal() && accumulatesGradients(function); }

struct ApplyPrecisionPass : impl::ApplyPrecisionPassBase<ApplyPrecisionPass> {
  using ApplyPrecisionPassBase::ApplyPrecisionPassBase;

  Type parse(StringRef option, StringRef name) {
    Type type = parseElementType(&getContext(), name);
    if (!type)
      getOperation().emitError() << option << " is '" << name << "'; expected fp32, bf16 or fp16";
    return type;
  }

  void runOnOperation() override {
    ModuleOp module = getOperation();
    ElementTypes types{parse("param-dtype", paramDtype), parse("reduce-dtype", reduceDtype),
                       Float32Type::get(&getContext()), parse("accumulate-dtype", accumulateDtype)};
    if (!types.compute || !types.reduce || !types.accumulate)
      return signalPassFailure();
    // What is not updated can be of any type.
    bool onlyEvaluates = module.lookupSymbol<func::FuncOp>(mlir::ft::kEvalStepFunction) &&
                         !module.lookupSymbol<func::FuncOp>(mlir::ft::kTrainStepFunction);
    if (!masterWeights && !onlyEvaluates && !types.compute.isBF16()) {
      module.emitError() << "only weights in bf16 can do without fp32 masters; param-dtype is '" << paramDtype
                         << "'";
      return signalPassFailure();
    }
    if (!masterWeights)
      types.master = types.compute;
    if (!llvm::any_of(module.getOps<func::FuncOp>(), accumulates))
      types.accumulate = Float32Type::get(&getContext());
    if (!types.accumulate.isF32() && types.accumulate != types.compute) {
      module.emitError() << "accumulate-dtype is '" << accumulateDtype
                         << "'; expected fp32, or what is computed with, "
                         << "param-dtype '" << paramDtype << "'";
      return signalPassFailure();
    }
    if (types.compute.isF32() && types.reduce.isF32())
      return;
    llvm::StringSet<> frozen = frozenUnits(module);
    for (UnitOp unit : module.getOps<UnitOp>())
      tellUnit(unit, types, frozenMasters || !frozen.contains(unit.getSymName()));
    SymbolTable symbols(module);
    for (StringRef name : {mlir::ft::kTrainMicroFunction, mlir::ft::kTrainStepFunction,
                           mlir::ft::kEvalStepFunction, mlir::ft::kSampleStepFunction}) {
      auto function = module.lookupSymbol<func::FuncOp>(name);
      if (function && failed(retype(function, types, symbols)))
        return signalPassFailure();
    }
  }
};

} // namespace
} // namespace ft::compiler
