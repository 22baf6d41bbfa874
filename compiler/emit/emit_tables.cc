// Units, parameters, buffers, and what became of activations.
#include "compiler/emit/numbering.h"

namespace ft::compiler {

using namespace mlir;
using mlir::ft::ParameterOp;
using mlir::ft::UnitOp;
using mlir::ftx::BufferOp;
using mlir::ftx::ProgramOp;
using mlir::ftx::StateOp;

std::optional<proto::DType> dtypeOf(Type type) {
  if (type.isF32())
    return proto::F32;
  if (type.isBF16())
    return proto::BF16;
  if (type.isF16())
    return proto::F16;
  if (type.isF64())
    return proto::F64;
  if (type.isInteger(32))
    return proto::I32;
  if (type.isInteger(64))
    return proto::I64;
  if (type.isInteger(1) || type.isInteger(8)) // a truth value is a byte, 0 or 1
    return proto::U8;
  return std::nullopt;
}

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
  out.set_decay(!op.getNoDecay());
  if (auto aliases = op.getAliases())
    for (auto alias : aliases->getAsRange<StringAttr>())
      out.add_aliases(alias.getValue().str());
  return success();
}

LogicalResult emitBuffer(BufferOp op, uint32_t program, const Numbering &numbers, proto::Buffer &out) {
  out.set_name(op.getName().str());
  out.set_class_(static_cast<proto::MemoryClass>(op.getMemoryClass()));
  out.set_space(op.getHost() ? proto::HOST : proto::DEVICE);
  out.mutable_size()->set_kind(static_cast<proto::SizeExpr::Kind>(op.getSizeKind()));
  out.mutable_size()->set_value(op.getBytes());
  if (op.getCudaBytes())
    out.set_cuda_bytes(*op.getCudaBytes());
  if (op.getUnit()) {
    auto unit = numbers.unit(*op.getUnit());
    if (!unit)
      return op.emitOpError() << "is sized by @" << *op.getUnit() << ", which is no ft.unit";
    out.mutable_size()->set_unit(*unit);
  }
  out.set_layer(op.getLayer().value_or("").str());
  out.set_persistent(op.getPersistent());
  if (op.getPersistent())
    return success();
  if (!op.getFirst())
    return op.emitOpError() << "'" << op.getName() << "' has no live range; run ftx-assign-live-ranges";
  out.set_program(program);
  out.set_first(*op.getFirst());
  out.set_last(*op.getLast());
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
  for (UnitOp unit : module.getOps<UnitOp>()) {
    proto::Unit &out = *plan.add_units();
    out.set_name(unit.getSymName().str());
    out.set_elements(unit.getElements());
  }
  for (ParameterOp parameter : module.getOps<ParameterOp>())
    if (failed(emitParameter(parameter, numbers, *plan.add_parameters())))
      return failure();
  // In the order of Numbering.
  for (BufferOp buffer : module.getOps<BufferOp>())
    if (failed(emitBuffer(buffer, 0, numbers, *plan.add_buffers())))
      return failure();
  for (auto [index, program] : llvm::enumerate(module.getOps<ProgramOp>()))
    for (BufferOp buffer : program.getOps<BufferOp>())
      if (failed(emitBuffer(buffer, index, numbers, *plan.add_buffers())))
        return failure();
  if (failed(emitStates(module, numbers, plan)))
    return failure();
  return emitSaved(module, plan);
}

} // namespace ft::compiler
