// Units, parameters, buffers, and what became of activations.
#include "compiler/emit/emit_parts.h"
#include "compiler/encode/encode.h"

namespace ft::compiler {

using namespace mlir;
using mlir::ft::ParameterOp;
using mlir::ftx::BufferOp;
using mlir::ftx::ProgramOp;
using mlir::ftx::StateOp;

namespace {

LogicalResult emitParameter(ParameterOp op, const Numbering &numbers, proto::Parameter &out) {
  auto unit = op.getUnit() ? numbers.unit(*op.getUnit()) : std::nullopt;
  if (!unit || !op.getOffset())
    return op.emitOpError() << "'" << op.getSymName() << "' is in no unit; run ft-form-units";
  out.set_name(op.getSymName().str());
  for (int64_t extent : cast<RankedTensorType>(op.getType()).getShape())
    out.add_shape(extent);
  out.set_unit(*unit);
  out.set_offset(*op.getOffset());
  out.set_decay(!op.getNoDecay() && cast<RankedTensorType>(op.getType()).getRank() >= 2);
  if (auto aliases = op.getAliases())
    for (auto alias : aliases->getAsRange<StringAttr>())
      out.add_aliases(alias.getValue().str());
  if (auto parts = op.getStoredAs())
    out.set_stored_as(parts->str());
  out.set_frozen(op.getFrozen());
  return success();
}

LogicalResult checkLiveRanges(ModuleOp module) {
  for (ProgramOp program : module.getOps<ProgramOp>())
    for (BufferOp buffer : program.getOps<BufferOp>())
      if (!buffer.getFirst())
        return buffer.emitOpError() << "'" << buffer.getName()
                                    << "' has no live range; run ftx-assign-live-ranges";
  return success();
}

LogicalResult emitStates(ModuleOp module, const Numbering &numbers, proto::Plan &plan) {
  for (StateOp state : module.getOps<StateOp>()) {
    auto unit = numbers.unit(state.getUnit());
    if (!unit)
      return state.emitOpError() << "is about @" << state.getUnit() << ", which is no ft.unit";
    proto::Plan::UnitState &out = *plan.add_unit_states();
    out.set_unit(*unit);
    out.set_role(state.getRole().str());
    out.set_buffer(numbers.buffer(state.getBuffer()));
    out.set_layout(static_cast<proto::Plan::UnitState::Layout>(state.getLayout()));
  }
  return success();
}

// Tolerates no other attribute than ft-record-saved writes.
LogicalResult emitSaved(ModuleOp module, proto::Plan &plan) {
  auto rows = module->getAttrOfType<ArrayAttr>(mlir::ft::kSavedAttr);
  for (Attribute attr : rows ? rows.getValue() : ArrayRef<Attribute>()) {
    auto row = dyn_cast<DictionaryAttr>(attr);
    auto text = [&](StringRef name) { return row ? row.getAs<StringAttr>(name) : StringAttr(); };
    auto number = [&](StringRef name) { return row ? row.getAs<IntegerAttr>(name) : IntegerAttr(); };
    if (!text("value") || !text("layer") || !text("choice") || !number("bytes") || !number("flops"))
      return module.emitError() << "'" << mlir::ft::kSavedAttr << "' has a row " << attr
                                << "; expected value, layer, choice, bytes, flops";
    proto::Plan::Saved &out = *plan.add_saved();
    out.set_value(text("value").str());
    out.set_layer(text("layer").str());
    out.set_choice(text("choice").str());
    out.set_bytes(number("bytes").getInt());
    out.set_flops(number("flops").getInt());
  }
  return success();
}

} // namespace

LogicalResult emitTables(ModuleOp module, const Numbering &numbers, proto::Plan &plan) {
  if (failed(checkLiveRanges(module)) || failed(encodeTables(module, numbers, plan)))
    return failure();
  for (ParameterOp parameter : module.getOps<ParameterOp>())
    if (failed(emitParameter(parameter, numbers, *plan.add_parameters())))
      return failure();
  if (failed(emitStates(module, numbers, plan)))
    return failure();
  return emitSaved(module, plan);
}

} // namespace ft::compiler
