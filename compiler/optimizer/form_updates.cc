// --ft-form-updates
// Enters: element types are final. Leaves: see passes.td. Nothing is refused.
#include "compiler/optimizer/passes.h"
#include "dialects/ft/composites.h"
#include "dialects/ft/elementwise.h"
#include "mlir/IR/IRMapping.h"

#include <map>
#include <tuple>

namespace ft::compiler {

#define GEN_PASS_DEF_FORMUPDATESPASS
#include "compiler/optimizer/passes.h.inc"

namespace {

using namespace mlir;
using mlir::ft::UpdateOp;

// As they lie in memory.
struct ElementTypes {
  Type gradient, parameter;
  Type copy = {}; // null where there is none
  bool roundedBehind = false;
  bool isDirection = false; // what is written in the parameter's place, which is not read
};

Type elementOf(Type buffer) {
  auto flat = dyn_cast<mlir::ft::FlatType>(buffer);
  return flat ? flat.getElementType() : cast<mlir::ft::SliceType>(buffer).getElementType();
}

ElementTypes typesOf(UpdateOp update, mlir::ft::UnitOp unit) {
  ElementTypes types = {elementOf(update.getGradient().getType()), unit.masterType()};
  if (update.getDirection()) {
    types.parameter = elementOf(update.getDirection().getType());
    types.isDirection = true;
    return types;
  }
  if (unit.getWorkingCopy())
    types.copy = unit.computeType();
  types.roundedBehind = update.roundsStochastically();
  return types;
}

class ClusterBuilder {
public:
  ClusterBuilder(func::FuncOp body, const ElementTypes &types)
      : body(body), types(types), b(body.getContext()), loc(UnknownLoc::get(body.getContext())) {}

  func::FuncOp build() {
    SmallVector<Type> arguments(body.getArgumentTypes());
    arguments[0] = as(arguments[0], types.gradient);
    if (!types.isDirection)
      arguments[1] = as(arguments[1], types.parameter);
    auto function = func::FuncOp::create(loc, body.getSymName(), b.getFunctionType(arguments, {}));
    function.setPrivate();
    function->setAttr(mlir::ft::kClusterAttr, b.getUnitAttr());
    Block *entry = function.addEntryBlock();
    b.setInsertionPointToEnd(entry);
    SmallVector<Value> before(entry->getArguments());
    for (Value &value : MutableArrayRef(before).take_front(types.isDirection ? 1 : 2))
      value = rounded(value, b.getF32Type());
    SmallVector<Value> results = selected(before, inlined(before));
    if (types.copy)
      results.push_back(rounded(results[0], types.copy));
    if (!types.roundedBehind)
      results[0] = rounded(results[0], types.parameter);
    func::ReturnOp::create(b, loc, results);
    function.setFunctionType(b.getFunctionType(arguments, TypeRange(results)));
    return function;
  }

private:
  static Type as(Type type, Type element) { return cast<RankedTensorType>(type).clone(element); }

  Value rounded(Value value, Type element) {
    Type type = as(value.getType(), element);
    return type == value.getType() ? value : mlir::ft::CopyOp::create(b, loc, type, value);
  }

  SmallVector<Value> inlined(ArrayRef<Value> arguments) {
    IRMapping values;
    values.map(body.getArguments(), arguments);
    for (Operation &op : body.front().without_terminator())
      b.clone(op, values);
    return llvm::map_to_vector(body.front().getTerminator()->getOperands(),
                               [&](Value value) { return values.lookup(value); });
  }

  // What was there where the step is not to be applied: the coefficient, the first scalar, is NaN.
  SmallVector<Value> selected(ArrayRef<Value> before, ArrayRef<Value> results) {
    const size_t gradients = types.isDirection ? 0 : 1; // before what results stand for
    Value clip = before[gradients + results.size()];
    Value skipped = mlir::ft::NeOp::create(b, loc, ValueRange{clip, clip});
    SmallVector<Value> kept;
    for (auto [index, result] : llvm::enumerate(results))
      kept.push_back(
          types.isDirection && index == 0
              ? result // read by an update that is not applied either
              : mlir::ft::SelectOp::create(b, loc, ValueRange{skipped, before[gradients + index], result}));
    return kept;
  }

  func::FuncOp body;
  const ElementTypes &types;
  OpBuilder b;
  Location loc;
};

struct FormUpdatesPass : impl::FormUpdatesPassBase<FormUpdatesPass> {
  void runOnOperation() override {
    ModuleOp module = getOperation();
    SymbolTable symbols(module);
    std::map<std::tuple<void *, const void *, const void *, const void *, bool>, FlatSymbolRefAttr> made;
    llvm::SetVector<func::FuncOp> replaced;
    for (func::FuncOp program : mlir::ft::programsOf(module))
      for (UpdateOp update : program.getOps<UpdateOp>()) {
        func::FuncOp body = mlir::ft::bodyOf(update);
        if (!mlir::ft::isUpdate(body))
          continue;
        replaced.insert(body);
        ElementTypes types = typesOf(update, symbols.lookup<mlir::ft::UnitOp>(update.getUnit()));
        FlatSymbolRefAttr &cluster = made[{body.getOperation(), types.gradient.getAsOpaquePointer(),
                                           types.parameter.getAsOpaquePointer(),
                                           types.copy.getAsOpaquePointer(), types.roundedBehind}];
        if (!cluster) {
          func::FuncOp function = ClusterBuilder(body, types).build();
          symbols.insert(function, module.getBody()->end());
          cluster = FlatSymbolRefAttr::get(function.getSymNameAttr());
        }
        update.setBodyAttr(cluster);
      }
    for (func::FuncOp body : replaced)
      symbols.erase(body);
  }
};

} // namespace
} // namespace ft::compiler
