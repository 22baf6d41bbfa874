// Checks what leaves the precision stage, without its analysis: the rules are those of the units' attributes
// and of the roles that ops give their results.
#include "compiler/precision/passes.h"

#include "compiler/precision/element_types.h"
#include "dialects/ft/composites.h"
#include "llvm/ADT/TypeSwitch.h"

namespace ft::compiler {

#define GEN_PASS_DEF_VERIFYPRECISIONPASS
#include "compiler/precision/passes.h.inc"

namespace {

using namespace mlir;
using mlir::ft::ElementRole;
using mlir::ft::PackOp;
using mlir::ft::UnitOp;

LogicalResult expectElements(Operation *op, Type type, Type expected, StringRef what) {
  if (elementsOf(type) == expected)
    return success();
  return op->emitError() << what << " is " << type << " after the precision stage; expected elements of type "
                         << expected;
}

// A master is f32 or what is computed with, and a working copy is only beside a master of another type.
LogicalResult verifyCopies(UnitOp unit, const ElementTypes &own) {
  if (unit.getWorkingCopy() && own.compute == own.master)
    return unit.emitError() << "has a working copy of what is " << own.compute << " already";
  if (!own.master.isF32() && own.master != own.compute)
    return unit.emitError() << "updates weights in " << own.master << " but computes in " << own.compute;
  std::optional<mlir::ft::ResidencyAttr> residency = unit.getResidency();
  if (residency && residency->getGathered() == mlir::ft::Gathered::never && own.compute != own.master &&
      !unit.getWorkingCopy())
    return unit.emitError() << "is never gathered, so it needs a working copy in " << own.compute;
  return success();
}

// All units have the same types, but that what is never updated may be at rest as it is computed with.
LogicalResult verifyUnits(ModuleOp module, ElementTypes &types) {
  llvm::StringSet<> frozen = frozenUnits(module);
  bool first = true;
  Type master;
  for (UnitOp unit : module.getOps<UnitOp>()) {
    ElementTypes own = elementTypesOf(unit);
    bool isFrozen = frozen.contains(unit.getSymName());
    if (!isFrozen && master && own.master != master)
      return unit.emitError() << "updates weights in " << own.master << " but another unit in " << master;
    if (!first && (own.compute != types.compute || own.reduce != types.reduce))
      return unit.emitError() << "computes in " << own.compute << " and reduces in " << own.reduce
                              << " but another unit in " << types.compute << " and " << types.reduce;
    if (!first && own.accumulate != types.accumulate)
      return unit.emitError() << "adds micro-steps up in " << own.accumulate << " but another unit in "
                              << types.accumulate;
    types = own;
    first = false;
    if (!isFrozen)
      master = own.master;
    if (failed(verifyCopies(unit, own)))
      return failure();
  }
  if (master)
    types.master = master;
  return success();
}

// Whether the op at `use` takes gradients of parameters in the type in which they are made.
bool takesGradient(OpOperand &use, Type made) {
  Operation *op = use.getOwner();
  if (auto pack = dyn_cast<PackOp>(op))
    return pack.isOfGradients();
  return llvm::any_of(op->getResults(), [&](OpResult result) {
    ElementRole role = mlir::ft::elementRole(op, result.getResultNumber());
    return elementsOf(result.getType()) == made && (role == ElementRole::Rounded || role == ElementRole::Sum);
  });
}

LogicalResult verifyResult(OpResult result, const ElementTypes &types, Type gradients) {
  Operation *op = result.getOwner();
  auto tensor = dyn_cast<RankedTensorType>(result.getType());
  if (!tensor || !isa<FloatType>(tensor.getElementType()))
    return success();
  ElementRole role = mlir::ft::elementRole(op, result.getResultNumber());
  Type f32 = Float32Type::get(op->getContext());
  // A parameter's elements are those of its flat buffer, and a copy rounds what is on its way from or to a
  // scalar.
  if (tensor.getNumElements() == 1 && isa<mlir::ft::ViewOp, mlir::ft::CopyOp>(op))
    return success();
  if (tensor.getRank() == 0)
    return expectElements(op, tensor, f32, "a scalar");
  if (role == ElementRole::Statistic)
    return expectElements(op, tensor, f32, "a statistic");
  if (role == ElementRole::Activation || tensor.getElementType() == types.compute)
    return expectElements(op, tensor, types.compute, "an activation");
  for (OpOperand &use : result.getUses())
    if (!takesGradient(use, gradients))
      return op->emitError() << "is " << tensor << " but is no gradient of a parameter: it is used by "
                             << use.getOwner()->getName();
  return expectElements(op, tensor, gradients, "the gradient of a parameter");
}

// Tensors in host memory and sums over ranks have the type that goes in; the verifiers of their ops say so,
// and that buffers which go from op to op keep theirs.
LogicalResult verifyOp(Operation *op, const ElementTypes &types, Type gradients, SymbolTable &symbols) {
  return TypeSwitch<Operation *, LogicalResult>(op)
      .Case([&](mlir::ft::ShardOp shard) {
        auto unit = symbols.lookup<UnitOp>(shard.getUnit());
        bool copy = unit.getWorkingCopy();
        return expectElements(op, shard.getSlice().getType(), copy ? types.compute : unit.masterType(),
                              copy ? "a working copy" : "a master");
      })
      .Case<mlir::ft::GatherOp, mlir::ft::FetchOp>([&](auto copy) {
        return expectElements(op, copy.getFlat().getType(), types.compute, "a gathered unit");
      })
      .Case([&](PackOp pack) {
        return pack.isOfGradients()
                   ? expectElements(op, pack.getFlat().getType(), gradients, "a flat gradient")
                   : expectElements(op, pack.getFlat().getType(), types.compute, "a flat direction");
      })
      .Case([&](mlir::ft::AccumulatedOp sum) {
        Type type = sum.getResult().getType();
        return isa<RankedTensorType>(type) ? success()
                                           : expectElements(op, type, types.reduce, "a sum over micro-steps");
      })
      .Case<mlir::ft::AllReduceOp, mlir::ft::OffloadOp, mlir::ft::ReloadOp>([](auto) { return success(); })
      .Case([&](mlir::ft::UpdateOp step) -> LogicalResult {
        if (!step.roundsStochastically() || !types.master.isF32())
          return success();
        return op->emitError("rounds stochastically what is f32; give bf16 weights no master");
      })
      .Default([&](Operation *) {
        return success(llvm::all_of(op->getResults(), [&](OpResult result) {
          return succeeded(verifyResult(result, types, gradients));
        }));
      });
}

// A program adds all of its flat gradients up, or none.
LogicalResult verifySums(func::FuncOp function) {
  PackOp first;
  for (auto pack : function.getOps<PackOp>()) {
    if (!pack.isOfGradients())
      continue;
    if (!first)
      first = pack;
    if (!mlir::ft::microStepSumOf(pack.getFlat()) != !mlir::ft::microStepSumOf(first.getFlat()))
      return pack.emitError() << "of the flat gradients of @" << function.getSymName()
                              << " some are added up over micro-steps and others not";
  }
  return success();
}

struct VerifyPrecisionPass : impl::VerifyPrecisionPassBase<VerifyPrecisionPass> {
  void runOnOperation() override {
    ModuleOp module = getOperation();
    Type f32 = Float32Type::get(&getContext());
    ElementTypes types{f32, f32, f32, f32};
    if (failed(verifyUnits(module, types)))
      return signalPassFailure();
    SymbolTable symbols(module);
    for (func::FuncOp function : mlir::ft::programsOf(module)) {
      if (failed(verifySums(function)))
        return signalPassFailure();
      Type gradients = types.ofGradients(function);
      for (Operation &op : function.getBody().front())
        if (failed(verifyOp(&op, types.of(&op), gradients, symbols)))
          return signalPassFailure();
    }
  }
};

} // namespace
} // namespace ft::compiler
