// The state of units: the optimizer's step, and how parameters start.
#include "compiler/lower/function_lowering.h"

namespace ft::compiler {

using namespace mlir;
using namespace mlir::ft;
using mlir::ftx::MemoryClass;
using mlir::ftx::SizeKind;
using mlir::ftx::View;

SmallVector<NamedAttribute> updateAttributes(UpdateOp op) {
  Builder builder(op.getContext());
  SmallVector<NamedAttribute> attributes = {builder.getNamedAttr("body", op.getBodyAttr())};
  if (op.getDirection())
    attributes.push_back(builder.getNamedAttr("direction", builder.getBoolAttr(true)));
  return attributes;
}

void FunctionLowering::lowerUpdate(UpdateOp op) {
  const UnitState &unit = state.unit(op.getUnitAttr().getValue());
  if (unit.hostStep() && mayRunOnHost(op))
    return lowerHostUpdate(op, unit);
  Tag tag = Tag::of(op);
  SmallVector<std::pair<View, View>> copiesBack; // from the device to the host
  // What lies on the host is updated in a copy on the device.
  auto onDevice = [&](const View &view, bool isRead) {
    if (!view.isPresent() || !isOnHost(view))
      return view;
    View here = makeLike(view, "fetched", MemoryClass::optimizer_state, tag);
    if (isRead)
      copyIn(view, here, tag);
    copiesBack.push_back({here, view});
    return here;
  };
  KernelSpec spec{.name = "update", .attributes = updateAttributes(op)};
  for (Value operand : op->getOperands())
    spec.ins.push_back(places[operand]);
  if (isa<FlatType>(op.getGradient().getType()) && !unit.wholeOptimizer())
    spec.ins.front().own = true;
  spec.outs.push_back(op.getDirection() ? places[op.getDirection()] = placeDirection(op)
                                        : onDevice(unit.updatedMaster(), /*isRead=*/true));
  for (StringRef role : op.getStates().getAsValueRange<StringAttr>())
    spec.outs.push_back(onDevice(unit.state(role), /*isRead=*/true));
  if (View working = unit.updatedWorkingCopy(); working.isPresent() && !op.getDirection())
    spec.outs.push_back(onDevice(working, /*isRead=*/false));
  if (op.roundsStochastically())
    spec.workspace = program.buffer(op.getLoc(), {.name = (unit.name() + ".update.workspace").str(),
                                                  .memoryClass = MemoryClass::workspace,
                                                  .bytes = 0,
                                                  .cudaBytes = kRoundingElements * 4,
                                                  .layer = tag.layer});
  auto cost = cast<CostOpInterface>(op.getOperation());
  spec.flops = cost.getFlops();
  spec.bytes = cost.getBytes();
  program.kernel(spec, tag);
  for (const auto &[here, there] : copiesBack)
    copyOut(here, there, tag);
}

// A copy: what reads it may run after it is stored.
void FunctionLowering::lowerLoadState(LoadStateOp op) {
  View copy = newBuffer(op->getOpResult(0));
  program.copy(state.unit(op.getUnit()).wholeState(op.getState()), copy, Tag::of(op));
  places[op.getValue()] = copy;
}

View FunctionLowering::placeDirection(UpdateOp op, bool host) {
  Type type = op.getDirection().getType();
  Value buffer = program.buffer(op.getLoc(),
                                {.name = (op.getUnit() + (host ? ".direction.updated" : ".direction")).str(),
                                 .memoryClass = MemoryClass::staging,
                                 .bytes = bytesOf(elementOf(type)),
                                 .kind = isa<FlatType>(type) ? SizeKind::unit_full : SizeKind::unit_slice,
                                 .unit = op.getUnitAttr(),
                                 .host = host,
                                 .layer = getLayer(op)});
  return {buffer, 0, elementOf(type)};
}

//===----------------------------------------------------------------------===//
// @init. An arena is zero from the start, and so are padding and all state that nothing initialises.
//===----------------------------------------------------------------------===//

View FunctionLowering::initialValues(const UnitState &unit) {
  if (unit.hasTwin())
    return unit.atRest(unit.compute);
  View master = unit.masterView();
  if (!isOnHost(master))
    return master;
  View &here = drawn[unit.name()];
  if (here.isPresent())
    return here;
  Builder builder(function.getContext());
  Tag tag{function.getLoc(), {}, builder.getStringAttr("init")};
  here = makeLike(master, "drawn", MemoryClass::parameters, tag);
  program.kernel({.name = "fill",
                  .outs = {here},
                  .attributes = {builder.getNamedAttr("value", builder.getF64FloatAttr(0.0))}},
                 tag);
  return here;
}

void FunctionLowering::lowerInit(InitOp op) {
  ParameterOp parameter = state.parameter(op.getParameter());
  const UnitState &unit = state.unit(*parameter.getUnit());
  Builder builder(op.getContext());
  int64_t elements = cast<RankedTensorType>(parameter.getType()).getNumElements();
  program.kernel(
      {.name = ("init_" + stringifyInitKind(parameter.getInit().getKind())).str(),
       .ins = {places[op.getRng()]},
       .outs = {initialValues(unit)},
       .attributes = {builder.getNamedAttr("parameter", op.getParameterAttr()),
                      builder.getNamedAttr("value", builder.getF64FloatAttr(parameter.getInit().getValue()))},
       .bytes = static_cast<uint64_t>(elements * bytesOf(unit.master))},
      {op.getLoc(), parameter.getLayerAttr(), getPhase(op)});
}

void FunctionLowering::finishInit() {
  for (const UnitState &unit : state.allUnits())
    finishInit(unit);
}

void FunctionLowering::finishInit(const UnitState &unit) {
  Builder builder(function.getContext());
  Tag tag{function.getLoc(), {}, builder.getStringAttr("init")};
  View master = initialValues(unit);
  if (unit.hasTwin())
    return copyOut(unit.updatedWorkingCopy(), unit.masterView(), tag);
  if (isOnHost(unit.masterView()))
    copyOut(master, unit.masterView(), tag);
  View working = unit.updatedWorkingCopy();
  if (!working.isPresent())
    return;
  View here = isOnHost(working) ? makeLike(working, "rounded", MemoryClass::parameters, tag) : working;
  program.kernel({.name = "cast", .ins = {master}, .outs = {here}}, tag);
  if (isOnHost(working))
    copyOut(here, working, tag);
  if (unit.wholeParameters() && !unit.wholeMaster())
    refresh(unit, tag);
}

} // namespace ft::compiler
