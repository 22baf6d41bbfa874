#include "compiler/schedule/job_state.h"

#include "compiler/schedule/program_builder.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace ft::compiler {

using namespace mlir;
using mlir::ft::PackOp;
using mlir::ft::ParameterOp;
using mlir::ft::UnitOp;
using mlir::ftx::MemoryClass;
using mlir::ftx::SizeKind;

int64_t bytesOf(RankedTensorType type) { return type.getNumElements() * (type.getElementTypeBitWidth() / 8); }

SmallVector<int64_t> UnitState::segments() const {
  SmallVector<int64_t> result;
  for (ParameterOp parameter : parameters) {
    int64_t begin = *parameter.getOffset();
    result.append({begin, begin + cast<RankedTensorType>(parameter.getType()).getNumElements()});
  }
  return result;
}

static bool flag(ModuleOp module, StringRef name) {
  auto attr = module->getAttrOfType<BoolAttr>(name);
  return attr && attr.getValue();
}

JobState::JobState(ModuleOp module, OpBuilder builder) : builder(builder) {
  for (UnitOp unit : module.getOps<UnitOp>()) {
    unitIndex[unit.getSymName()] = units.size();
    units.push_back({});
    units.back().unit = unit;
  }
  for (ParameterOp parameter : module.getOps<ParameterOp>()) {
    parameters[parameter.getSymName()] = parameter;
    if (auto unit = parameter.getUnit())
      units[unitIndex.lookup(*unit)].parameters.push_back(parameter);
  }
  module.walk([&](PackOp op) {
    units[unitIndex.lookup(op.getFlat().getType().getUnit().getValue())].trained = true;
  });
  for (UnitState &state : units) {
    llvm::stable_sort(state.parameters,
                      [](ParameterOp a, ParameterOp b) { return *a.getOffset() < *b.getOffset(); });
    makeBuffers(state, module);
  }
}

void JobState::makeBuffers(UnitState &state, ModuleOp module) {
  state.values = makeFlat(state, "parameters", MemoryClass::parameters, flag(module, "ft.shards_parameters"));
  if (state.trained) {
    bool sliceMoments = flag(module, "ft.shards_optimizer");
    state.gradients =
        makeFlat(state, "gradients", MemoryClass::gradients, flag(module, "ft.shards_gradients"));
    state.expAvg = makeFlat(state, "exp_avg", MemoryClass::optimizer_state, sliceMoments);
    state.expAvgSq = makeFlat(state, "exp_avg_sq", MemoryClass::optimizer_state, sliceMoments);
  }
  ftx::UnitStateOp::create(builder, state.unit.getLoc(), state.unit.getSymName(), state.values,
                           state.gradients, state.expAvg, state.expAvgSq);
}

Value JobState::makeFlat(const UnitState &state, StringRef role, MemoryClass memoryClass, bool slice) {
  UnitOp unit = state.unit;
  return makeBuffer(builder, unit.getLoc(),
                    {.name = (unit.getSymName() + "." + role).str(),
                     .memoryClass = memoryClass,
                     .bytes = kMasterBytes,
                     .kind = slice ? SizeKind::unit_slice : SizeKind::unit_full,
                     .unit = FlatSymbolRefAttr::get(unit.getSymNameAttr()),
                     .persistent = true});
}

Value JobState::port(StringRef name, RankedTensorType type) {
  Value &buffer = ports[name];
  if (!buffer)
    buffer = makeBuffer(
        builder, builder.getUnknownLoc(),
        {.name = name.str(), .memoryClass = MemoryClass::io, .bytes = bytesOf(type), .persistent = true});
  return buffer;
}

} // namespace ft::compiler
