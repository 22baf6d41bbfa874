// Units, parameters and buffers.
#include "compiler/emit/numbering.h"

namespace ft::compiler {

using namespace mlir;
using mlir::ft::ParameterOp;
using mlir::ft::UnitOp;
using mlir::ftx::BufferOp;
using mlir::ftx::ProgramOp;
using mlir::ftx::UnitStateOp;

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
  if (type.isInteger(8))
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
  out.set_space(proto::DEVICE);
  out.mutable_size()->set_kind(static_cast<proto::SizeExpr::Kind>(op.getSizeKind()));
  out.mutable_size()->set_value(op.getBytes());
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

LogicalResult emitUnitBuffers(ModuleOp module, const Numbering &numbers, proto::Plan &plan) {
  for ([[maybe_unused]] UnitOp unit : module.getOps<UnitOp>())
    plan.add_unit_buffers();
  for (UnitStateOp state : module.getOps<UnitStateOp>()) {
    auto unit = numbers.unit(state.getUnit());
    if (!unit)
      return state.emitOpError() << "is about @" << state.getUnit() << ", which is no ft.unit";
    auto plusOne = [&](Value buffer) { return buffer ? numbers.buffer(buffer) + 1 : 0; };
    proto::Plan::UnitBuffers &out = *plan.mutable_unit_buffers(*unit);
    out.set_parameters_plus_one(plusOne(state.getParameters()));
    out.set_gradients_plus_one(plusOne(state.getGradients()));
    out.set_exp_avg_plus_one(plusOne(state.getExpAvg()));
    out.set_exp_avg_sq_plus_one(plusOne(state.getExpAvgSq()));
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
  return emitUnitBuffers(module, numbers, plan);
}

} // namespace ft::compiler
