#include "compiler/lower/job_state.h"

#include "compiler/lower/program_builder.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/TypeSwitch.h"

namespace ft::compiler {

using namespace mlir;
using mlir::ft::FlatType;
using mlir::ft::PackOp;
using mlir::ft::ParameterOp;
using mlir::ft::SliceType;
using mlir::ft::UnitOp;
using mlir::ft::UpdateOp;
using mlir::ftx::MemoryClass;
using mlir::ftx::SizeKind;
using mlir::ftx::View;

int64_t bytesOf(RankedTensorType type) { return type.getNumElements() * bytesOf(type.getElementType()); }

int64_t bytesOf(Type element) { return mlir::ft::elementBytes(element); }

bool isOfWhole(Value gradient) {
  return isa_and_present<PackOp, mlir::ft::CollectOp>(gradient.getDefiningOp());
}

bool mayRunOnHost(UpdateOp update) { return !update.getDirection() || !update.getStates().empty(); }

FlatSymbolRefAttr unitOf(Type type) {
  return llvm::TypeSwitch<Type, FlatSymbolRefAttr>(type)
      .Case<FlatType, SliceType>([](auto flat) { return flat.getUnit(); })
      .Default(FlatSymbolRefAttr());
}

Type elementOf(Type type) {
  return llvm::TypeSwitch<Type, Type>(type).Case<FlatType, SliceType>(
      [](auto flat) { return flat.getElementType(); });
}

//===----------------------------------------------------------------------===//
// UnitState
//===----------------------------------------------------------------------===//

FlatSymbolRefAttr UnitState::symbol() const { return FlatSymbolRefAttr::get(UnitOp(unit).getSymNameAttr()); }

static View wholeView(Value buffer, Type element) { return {buffer, 0, element}; }

/// This rank's part of a buffer that may be whole, where others are slices.
static View partOf(Value buffer, Type element, bool bufferIsWhole, bool partIsWhole) {
  return {buffer, 0, element, /*own=*/bufferIsWhole && !partIsWhole};
}

View UnitState::masterView() const {
  Value separate = buffers.lookup("master");
  return wholeView(separate ? separate : buffers.lookup("parameters"), master);
}

View UnitState::updatedMaster() const {
  View all = masterView();
  if (buffers.contains("master"))
    return all;
  return partOf(all.buffer, all.type, wholeParameters(), wholeMaster());
}

View UnitState::updatedWorkingCopy() const {
  if (!workingCopy && !hasTwin())
    return {};
  return partOf(buffers.lookup("parameters"), compute, wholeParameters(), wholeMaster());
}

View UnitState::atRest(Type element) const {
  return element == master && !hasTwin() ? masterView() : wholeView(buffers.lookup("parameters"), element);
}

View UnitState::state(StringRef role) const {
  return wholeView(buffers.lookup(role), Float32Type::get(UnitOp(unit).getContext()));
}

View UnitState::wholeState(StringRef role) const {
  return {buffers.lookup(role), 0, wholeStates.lookup(role).second};
}

View UnitState::gradients() const { return wholeView(buffers.lookup("gradients"), reduce); }

View UnitState::gradientSlice() const {
  return partOf(buffers.lookup("gradients"), reduce, wholeGradients(), wholeOptimizer());
}

//===----------------------------------------------------------------------===//
// JobState
//===----------------------------------------------------------------------===//

JobState::JobState(ModuleOp module, OpBuilder builder) : builder(builder) {
  for (UnitOp unit : module.getOps<UnitOp>()) {
    unitIndex[unit.getSymName()] = units.size();
    units.emplace_back(unit);
  }
  for (ParameterOp parameter : module.getOps<ParameterOp>())
    parameters[parameter.getSymName()] = parameter;
  module.walk([&](PackOp op) {
    if (op.isOfGradients())
      units[unitIndex.lookup(unitOf(op.getFlat().getType()).getValue())].trained = true;
  });
  module.walk([&](UpdateOp op) {
    UnitState &unit = units[unitIndex.lookup(op.getUnit())];
    unit.hostGradients |= mayRunOnHost(op) && !isOfWhole(op.getGradient());
    for (StringRef role : op.getStates().getAsValueRange<StringAttr>())
      unit.optimizerRoles.push_back(role);
  });
  module.walk([&](mlir::ft::LoadStateOp op) {
    units[unitIndex.lookup(op.getUnit())].wholeStates[op.getState()] = {op.getLayout(),
                                                                        op.getValue().getType()};
  });
  for (UnitState &state : units) {
    makeBuffers(state);
  }
}

void JobState::makeBuffers(UnitState &state) {
  Type f32 = builder.getF32Type();
  if (state.compute == state.master) {
    addFlat(state, "parameters", MemoryClass::parameters, state.wholeParameters(), state.master,
            state.hostParameters());
    if (state.hasTwin())
      addFlat(state, "master", MemoryClass::optimizer_state, state.wholeMaster(), state.master,
              /*host=*/true);
  } else {
    if (state.workingCopy)
      addFlat(state, "parameters", MemoryClass::parameters, state.wholeParameters(), state.compute,
              state.hostParameters());
    addFlat(state, "master", state.trained ? MemoryClass::optimizer_state : MemoryClass::parameters,
            state.wholeMaster(), f32, state.hostParameters() || (state.trained && state.hostOptimizer()));
  }
  if (!state.trained)
    return;
  if (!state.hostStep() || state.hostGradients)
    addFlat(state, "gradients", MemoryClass::gradients,
            state.hostStep() ? state.wholeOptimizer() : state.wholeGradients(), state.reduce,
            state.hostStep());
  for (StringRef role : state.optimizerRoles)
    addFlat(state, role, MemoryClass::optimizer_state, state.wholeOptimizer(), f32, state.hostOptimizer());
  for (const auto &[role, whole] : state.wholeStates)
    addWhole(state, role, whole.first, whole.second);
}

// Small, so they stay on the device.
void JobState::addWhole(UnitState &state, StringRef role, mlir::ft::StateLayout layout,
                        RankedTensorType type) {
  UnitOp unit = state.unit;
  Value buffer = makeBuffer(builder, unit.getLoc(),
                            {.name = (unit.getSymName() + "." + role).str(),
                             .memoryClass = MemoryClass::optimizer_state,
                             .bytes = bytesOf(type),
                             .persistent = true});
  state.buffers[role] = buffer;
  ftx::StateOp::create(builder, unit.getLoc(), unit.getSymName(), role, buffer, layout);
}

void JobState::addFlat(UnitState &state, StringRef role, MemoryClass memoryClass, bool whole, Type element,
                       bool host) {
  UnitOp unit = state.unit;
  Value buffer = makeBuffer(builder, unit.getLoc(),
                            {.name = (unit.getSymName() + "." + role).str(),
                             .memoryClass = memoryClass,
                             .bytes = bytesOf(element),
                             .kind = whole ? SizeKind::unit_full : SizeKind::unit_slice,
                             .unit = state.symbol(),
                             .persistent = true,
                             .host = host});
  state.buffers[role] = buffer;
  ftx::StateOp::create(builder, unit.getLoc(), unit.getSymName(), role, buffer);
}

Value JobState::port(StringRef name, RankedTensorType type) {
  Value &buffer = ports[name];
  if (!buffer)
    buffer = makeBuffer(
        builder, builder.getUnknownLoc(),
        {.name = name.str(), .memoryClass = MemoryClass::io, .bytes = bytesOf(type), .persistent = true});
  return buffer;
}

View JobState::sum(StringRef name, Type type) {
  if (auto tensor = dyn_cast<RankedTensorType>(type))
    return {port((name + ".accumulated").str(), tensor), 0, type};
  UnitState &state = units[unitIndex.lookup(unitOf(type).getValue())];
  if (!state.buffers.contains("accumulated"))
    addFlat(state, "accumulated", MemoryClass::gradients, isa<FlatType>(type) || state.wholeOptimizer(),
            state.accumulate,
            /*host=*/false);
  return wholeView(state.buffers.lookup("accumulated"), state.accumulate);
}

} // namespace ft::compiler
