#include "compiler/encode/encode.h"

namespace ft::compiler {

using namespace mlir;
using mlir::ft::UnitOp;
using mlir::ftx::BufferOp;
using mlir::ftx::ProgramOp;

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

LogicalResult encodeBuffer(BufferOp op, uint32_t program, const Numbering &numbers, proto::Buffer &out) {
  out.set_name(op.getName().str());
  out.set_class_(static_cast<proto::MemoryClass>(op.getMemoryClass()));
  out.set_space(op.getHost() ? proto::HOST : proto::DEVICE);
  out.mutable_size()->set_kind(static_cast<proto::SizeExpr::Kind>(op.getSizeKind()));
  out.mutable_size()->set_value(op.getBytes());
  if (op.getCudaBytes())
    out.set_cuda_bytes(*op.getCudaBytes());
  out.mutable_size()->set_index(op.getShareIndex().value_or(0));
  out.mutable_size()->set_count(op.getShareCount().value_or(0));
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
  out.set_program(program);
  out.set_first(op.getFirst().value_or(0));
  out.set_last(op.getLast().value_or(0));
  return success();
}

} // namespace

LogicalResult encodeTables(ModuleOp module, const Numbering &numbers, proto::Plan &plan) {
  plan.set_block_elements(mlir::ft::kBlockElements);
  for (UnitOp unit : module.getOps<UnitOp>()) {
    proto::Unit &out = *plan.add_units();
    out.set_name(unit.getSymName().str());
    out.set_elements(unit.getElements());
  }
  for (BufferOp buffer : module.getOps<BufferOp>())
    if (failed(encodeBuffer(buffer, 0, numbers, *plan.add_buffers())))
      return failure();
  for (auto [index, program] : llvm::enumerate(module.getOps<ProgramOp>()))
    for (BufferOp buffer : program.getOps<BufferOp>())
      if (failed(encodeBuffer(buffer, index, numbers, *plan.add_buffers())))
        return failure();
  return success();
}

} // namespace ft::compiler
