#include "compiler/lower/program_builder.h"

#include "dialects/ft/dialect.h"

namespace ft::compiler {

using namespace mlir;
using namespace mlir::ftx;

Value makeBuffer(OpBuilder &builder, Location loc, const BufferSpec &spec) {
  return BufferOp::create(
      builder, loc, BufferType::get(builder.getContext()), spec.name, spec.memoryClass,
      spec.share ? SizeKind::share : spec.kind, spec.unit, static_cast<uint64_t>(spec.bytes),
      spec.cudaBytes ? builder.getI64IntegerAttr(*spec.cudaBytes) : IntegerAttr(), spec.host, spec.persistent,
      /*first=*/IntegerAttr(),
      /*last=*/IntegerAttr(), spec.layer,
      spec.share ? builder.getI64IntegerAttr(spec.share->index) : IntegerAttr(),
      spec.share ? builder.getI64IntegerAttr(spec.share->count) : IntegerAttr());
}

static IntegerAttr countOrNull(OpBuilder &builder, uint64_t count) {
  return count == 0 ? IntegerAttr() : builder.getI64IntegerAttr(count);
}

Tag Tag::of(Operation *op) { return {op->getLoc(), mlir::ft::getLayer(op), mlir::ft::getPhase(op)}; }

ProgramBuilder::ProgramBuilder(OpBuilder builder, Location loc, StringRef name) : builder(builder) {
  auto program = ProgramOp::create(this->builder, loc, name);
  this->builder.setInsertionPointToStart(&program.getBody().emplaceBlock());
}

Value ProgramBuilder::buffer(Location loc, BufferSpec spec) {
  unsigned taken = names[spec.name]++;
  if (taken > 0)
    spec.name += "." + std::to_string(taken + 1);
  return makeBuffer(builder, loc, spec);
}

void ProgramBuilder::kernel(const KernelSpec &spec, const Tag &tag) {
  MLIRContext *context = builder.getContext();
  auto attributes =
      spec.attributes.empty() ? DictionaryAttr() : DictionaryAttr::get(context, spec.attributes);
  KernelOp::create(builder, tag.loc, spec.name, Stream::compute, buffersOf(spec.ins),
                   attributeOf(context, spec.ins), buffersOf(spec.outs), attributeOf(context, spec.outs),
                   spec.workspace, attributes, tag.layer, tag.phase, countOrNull(builder, spec.flops),
                   countOrNull(builder, spec.modelFlops), countOrNull(builder, spec.bytes));
}

void ProgramBuilder::launch(const KernelSpec &spec, const Tag &tag) {
  MLIRContext *context = builder.getContext();
  auto launch = LaunchOp::create(
      builder, tag.loc, TokenType::get(context), spec.name, Stream::host_compute, Stream::compute,
      buffersOf(spec.ins), attributeOf(context, spec.ins), buffersOf(spec.outs),
      attributeOf(context, spec.outs), DictionaryAttr::get(context, spec.attributes), tag.layer, tag.phase,
      countOrNull(builder, spec.flops), countOrNull(builder, spec.bytes), /*reason=*/StringAttr());
  WaitOp::create(builder, tag.loc, launch.getToken(), Stream::compute);
}

void ProgramBuilder::copy(const View &from, const View &to, const Tag &tag) {
  auto type = cast<RankedTensorType>(from.type);
  uint64_t bytes = type.getNumElements() * mlir::ft::elementBytes(type.getElementType());
  kernel({.name = "copy", .ins = {from}, .outs = {to}, .workspace = {}, .attributes = {}, .bytes = 2 * bytes},
         tag);
}

void ProgramBuilder::transfer(const TransferSpec &spec, const Tag &tag) {
  MLIRContext *context = builder.getContext();
  SmallVector<View> outs;
  if (spec.to.isPresent())
    outs.push_back(spec.to);
  using mlir::ft::AxisAttr;
  auto axisAttr = [&](std::optional<mlir::ft::Axis> axis) {
    return axis ? AxisAttr::get(context, *axis) : AxisAttr();
  };
  auto start = StartOp::create(builder, tag.loc, TokenType::get(context), spec.transfer, spec.stream,
                               Stream::compute, axisAttr(spec.axis), spec.unit, spec.from.buffer,
                               attributeOf(context, spec.from), buffersOf(outs), attributeOf(context, outs),
                               tag.layer, tag.phase, /*reason=*/StringAttr(), /*parameters=*/ArrayAttr());
  WaitOp::create(builder, tag.loc, start.getToken(), Stream::compute);
}

void ProgramBuilder::allToAll(ArrayRef<View> from, ArrayRef<View> to, ArrayAttr parameters, const Tag &tag) {
  MLIRContext *context = builder.getContext();
  auto start =
      StartOp::create(builder, tag.loc, TokenType::get(context), Transfer::all_to_all, Stream::gather,
                      Stream::compute, mlir::ft::AxisAttr::get(context, mlir::ft::Axis::shard),
                      /*unit=*/FlatSymbolRefAttr(), buffersOf(from), attributeOf(context, from),
                      buffersOf(to), attributeOf(context, to), tag.layer, tag.phase,
                      /*reason=*/StringAttr(), parameters);
  WaitOp::create(builder, tag.loc, start.getToken(), Stream::compute);
}

void ProgramBuilder::release(Value buffer, const Tag &tag) {
  ReleaseOp::create(builder, tag.loc, buffer, tag.layer, tag.phase);
}

void ProgramBuilder::input(StringRef name, const View &view) {
  OpBuilder::InsertionGuard guard(builder);
  if (lastInput)
    builder.setInsertionPointAfter(lastInput);
  else
    builder.setInsertionPointToStart(builder.getInsertionBlock());
  lastInput = InputOp::create(builder, builder.getUnknownLoc(), name, view.buffer, view.type);
}

void ProgramBuilder::output(StringRef name, const View &view, bool counted) {
  OutputOp::create(builder, builder.getUnknownLoc(), name, view.buffer, view.type, counted);
}

} // namespace ft::compiler
