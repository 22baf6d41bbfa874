#include "compiler/precision/element_types.h"

#include "llvm/ADT/StringSwitch.h"
#include "llvm/ADT/TypeSwitch.h"

namespace ft::compiler {

using namespace mlir;
using mlir::ft::FlatType;
using mlir::ft::HostType;
using mlir::ft::SliceType;

// Weights at rest, a copy of them, or a parameter in one.
static bool readsWeights(Operation *op) {
  return TypeSwitch<Operation *, bool>(op)
      .Case<mlir::ft::ShardOp, mlir::ft::FetchOp>([](auto) { return true; })
      .Case([](mlir::ft::GatherOp gather) {
        return gather.getSlice().getDefiningOp<mlir::ft::ShardOp>() != nullptr;
      })
      .Case([](mlir::ft::ViewOp view) {
        Operation *whole = view.getFlat().getDefiningOp();
        return whole && readsWeights(whole);
      })
      .Default(false);
}

ElementTypes ElementTypes::of(Operation *op) const {
  ElementTypes types = *this;
  if (compute.isF16() && mlir::ft::isInPhase(op, mlir::ft::kPhaseOptimizer) && !readsWeights(op))
    types.compute = BFloat16Type::get(op->getContext());
  return types;
}

Type ElementTypes::ofGradients(func::FuncOp function) const {
  for (auto pack : function.getOps<mlir::ft::PackOp>())
    if (pack.isOfGradients() && mlir::ft::microStepSumOf(pack.getFlat()))
      return accumulate;
  return reduce;
}

bool accumulatesGradients(func::FuncOp function) {
  return llvm::any_of(function.getBody().front(), [](Operation &op) {
    auto sum = dyn_cast<mlir::ft::MicroStepSumOpInterface>(op);
    return sum && isa<FlatType, SliceType>(sum.getX().getType());
  });
}

Type parseElementType(MLIRContext *context, StringRef name) {
  return llvm::StringSwitch<Type>(name)
      .Case("fp32", Float32Type::get(context))
      .Case("bf16", BFloat16Type::get(context))
      .Case("fp16", Float16Type::get(context))
      .Default(Type());
}

Type withElements(Type type, Type element) {
  return TypeSwitch<Type, Type>(type)
      .Case([&](FlatType flat) { return FlatType::get(type.getContext(), flat.getUnit(), element); })
      .Case([&](SliceType slice) { return SliceType::get(type.getContext(), slice.getUnit(), element); })
      .Case([&](RankedTensorType tensor) { return tensor.clone(element); });
}

Type elementsOf(Type type) {
  return TypeSwitch<Type, Type>(type)
      .Case<FlatType, SliceType, RankedTensorType>([](auto whole) { return whole.getElementType(); })
      .Case([](HostType host) { return host.getTensor().getElementType(); })
      .Default(Type());
}

bool isRetyped(Type type) {
  auto tensor = dyn_cast<RankedTensorType>(type);
  return tensor && isa<FloatType>(tensor.getElementType()) && tensor.getRank() > 0;
}

llvm::StringSet<> frozenUnits(ModuleOp module) {
  llvm::StringSet<> units;
  for (auto parameter : module.getOps<mlir::ft::ParameterOp>())
    if (parameter.getFrozen() && parameter.getUnit())
      units.insert(*parameter.getUnit());
  return units;
}

ElementTypes elementTypesOf(mlir::ft::UnitOp unit) {
  return {unit.computeType(), unit.reduceType(), unit.masterType(), unit.accumulateType()};
}

} // namespace ft::compiler
