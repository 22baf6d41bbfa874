#include "compiler/cluster/body_function.h"

#include "compiler/codegen/cluster_body.h"
#include "dialects/ft/clusters.h"
#include "mlir/IR/IRMapping.h"

namespace ft::compiler {

using namespace mlir;

bool isConstant(Value value) {
  return isa_and_nonnull<mlir::ft::FillOp, mlir::ft::IotaOp>(value.getDefiningOp());
}

namespace {

// What says where an op stood.
constexpr StringRef kPlaceAttrs[] = {mlir::ft::kLayerAttr, mlir::ft::kPhaseAttr, mlir::ft::kRematAttr};

Operation *cloneInto(OpBuilder &builder, Operation *op, IRMapping &values) {
  Operation *clone = builder.clone(*op, values);
  clone->setLoc(builder.getUnknownLoc());
  for (StringRef name : kPlaceAttrs)
    clone->removeAttr(name);
  return clone;
}

// All that a body function of a group is made of: groups with equal shapes have equal ones.
class GroupShape {
public:
  explicit GroupShape(const OpGroup &group) {
    for (Value input : group.inputs) {
      numberOf(input);
      shape.push_back(input.getType().getAsOpaquePointer());
    }
    end();
    for (Operation *op : group.ops)
      add(op);
    for (Value result : group.results)
      shape.push_back(numberOf(result));
  }

  std::vector<const void *> take() { return std::move(shape); }

private:
  void add(Operation *op) {
    addKind(op);
    for (Value operand : op->getOperands())
      if (isConstant(operand))
        addKind(operand.getDefiningOp());
      else
        shape.push_back(numberOf(operand));
    end();
    for (Value result : op->getResults())
      numberOf(result);
  }

  void addKind(Operation *op) {
    shape.push_back(op->getName().getAsOpaquePointer());
    shape.push_back(op->getPropertiesAsAttribute().getAsOpaquePointer());
    for (Type type : op->getResultTypes())
      shape.push_back(type.getAsOpaquePointer());
    for (NamedAttribute attr : op->getAttrDictionary()) // what is no property either
      if (!llvm::is_contained(kPlaceAttrs, attr.getName().getValue()))
        shape.insert(shape.end(),
                     {attr.getName().getAsOpaquePointer(), attr.getValue().getAsOpaquePointer()});
  }

  void end() { shape.push_back(nullptr); }

  const void *numberOf(Value value) {
    return reinterpret_cast<const void *>(numbers.try_emplace(value, numbers.size() + 1).first->second);
  }

  llvm::DenseMap<Value, uintptr_t> numbers;
  std::vector<const void *> shape;
};

} // namespace

OpGroup::OpGroup(ArrayRef<Operation *> ops) : ops(ops) {
  llvm::SmallPtrSet<Operation *, 16> members(ops.begin(), ops.end());
  for (Operation *op : ops) {
    for (Value operand : op->getOperands())
      if (!members.contains(operand.getDefiningOp()) && !isConstant(operand))
        inputs.insert(operand);
    for (Value result : op->getResults())
      if (llvm::any_of(result.getUsers(), [&](Operation *user) { return !members.contains(user); }))
        results.push_back(result);
  }
}

namespace {

using Streams = llvm::SmallSetVector<int64_t, 4>;

// In no module. Streams become their places among those of the group.
func::FuncOp functionOf(const OpGroup &group, Streams &streams) {
  MLIRContext *context = group.ops.front()->getContext();
  auto type = FunctionType::get(
      context, llvm::map_to_vector(group.inputs, [](Value value) { return value.getType(); }),
      llvm::map_to_vector(group.results, [](Value value) { return value.getType(); }));
  auto function = func::FuncOp::create(UnknownLoc::get(context), "cluster", type);
  function.setPrivate();
  function->setAttr(mlir::ft::kClusterAttr, UnitAttr::get(context));
  Block *block = function.addEntryBlock();
  OpBuilder builder = OpBuilder::atBlockEnd(block);
  IRMapping values;
  values.map(group.inputs.getArrayRef(), block->getArguments());
  for (Operation *op : group.ops) {
    for (Value operand : op->getOperands())
      if (isConstant(operand) && !values.contains(operand))
        cloneInto(builder, operand.getDefiningOp(), values);
    Operation *clone = cloneInto(builder, op, values);
    if (auto bits = dyn_cast<mlir::ft::RandomBitsOp>(clone)) {
      streams.insert(bits.getStream());
      bits.setStream(llvm::find(streams, bits.getStream()) - streams.begin());
    }
  }
  auto results = llvm::map_to_vector(group.results, [&](Value value) { return values.lookup(value); });
  func::ReturnOp::create(builder, builder.getUnknownLoc(), results);
  return function;
}

} // namespace

std::optional<BodyFunction> makeBodyFunction(const OpGroup &group) {
  if (group.results.empty() || group.results.size() > kMaxClusterResults ||
      group.inputs.size() > kMaxClusterInputs)
    return std::nullopt;
  Streams streams;
  OwningOpRef<func::FuncOp> function = functionOf(group, streams);
  ScopedDiagnosticHandler silent(function->getContext(), [](Diagnostic &) { return success(); });
  FailureOr<ClusterBody> body = clusterBodyOf(*function);
  if (failed(body))
    return std::nullopt;
  return BodyFunction{std::move(function), *std::move(body), streams.takeVector()};
}

std::string refusalOf(const OpGroup &group) {
  Streams streams;
  OwningOpRef<func::FuncOp> function = functionOf(group, streams);
  std::string why;
  ScopedDiagnosticHandler handler(function->getContext(), [&](Diagnostic &diagnostic) {
    why = diagnostic.str();
    return success();
  });
  (void)clusterBodyOf(*function);
  return why;
}

const BodyFunction *BodyFunctions::of(const OpGroup &group) {
  auto [found, isNew] = made.try_emplace(GroupShape(group).take());
  if (isNew)
    found->second = makeBodyFunction(group);
  return found->second ? &*found->second : nullptr;
}

} // namespace ft::compiler
