// Communication between ranks, and copies between host and device memory.
#include "compiler/lower/function_lowering.h"

namespace ft::compiler {

using namespace mlir;
using namespace mlir::ft;
using mlir::ftx::BufferOp;
using mlir::ftx::MemoryClass;
using mlir::ftx::SizeKind;
using mlir::ftx::Stream;
using mlir::ftx::Transfer;
using mlir::ftx::View;

void FunctionLowering::copyIn(const View &host, const View &device, const Tag &tag) {
  program.transfer({.transfer = Transfer::copy, .stream = Stream::h2d, .from = host, .to = device}, tag);
}

void FunctionLowering::copyOut(const View &device, const View &host, const Tag &tag) {
  program.transfer({.transfer = Transfer::copy, .stream = Stream::d2h, .from = device, .to = host}, tag);
}

View FunctionLowering::makeLike(const View &view, StringRef suffix, MemoryClass memoryClass, const Tag &tag,
                                bool host) {
  auto source = view.buffer.getDefiningOp<BufferOp>();
  Value buffer = program.buffer(tag.loc, {.name = (source.getName() + "." + suffix).str(),
                                          .memoryClass = memoryClass,
                                          .bytes = bytesOf(view.type),
                                          .kind = view.isOwn() ? SizeKind::unit_slice : source.getSizeKind(),
                                          .unit = source.getUnitAttr(),
                                          .host = host,
                                          .layer = tag.layer});
  return {buffer, 0, view.type};
}

void FunctionLowering::lowerGather(GatherOp op) {
  Type flat = op.getFlat().getType();
  Tag tag = Tag::of(op);
  View slice = places[op.getSlice()];
  if (isOnHost(slice)) {
    View here = makeLike(slice, "fetched", MemoryClass::staging, tag);
    copyIn(slice, here, tag);
    slice = here;
  }
  Value buffer = program.buffer(op.getLoc(), {.name = (unitOf(flat).getValue() + ".gathered").str(),
                                              .memoryClass = MemoryClass::gathered,
                                              .bytes = bytesOf(elementOf(flat)),
                                              .kind = SizeKind::unit_full,
                                              .unit = unitOf(flat),
                                              .layer = tag.layer});
  View whole{buffer, 0, elementOf(flat)};
  if (slice.type != whole.type) {
    View own = whole;
    own.own = true;
    program.kernel({.name = "cast", .ins = {slice}, .outs = {own}}, tag);
    slice = own;
  }
  program.transfer({.transfer = Transfer::all_gather,
                    .stream = Stream::gather,
                    .axis = Axis::shard,
                    .unit = unitOf(flat),
                    .from = slice,
                    .to = whole},
                   tag);
  places[op.getFlat()] = whole;
}

void FunctionLowering::lowerFetch(FetchOp op) {
  Tag tag = Tag::of(op);
  View whole = makeLike(places[op.getSlice()], "fetched", MemoryClass::gathered, tag);
  copyIn(places[op.getSlice()], whole, tag);
  places[op.getFlat()] = whole;
}

void FunctionLowering::lowerReduceScatter(ReduceScatterOp op) {
  Type type = op.getSlice().getType();
  FlatSymbolRefAttr unit = unitOf(type);
  const UnitState &owner = state.unit(unit.getValue());
  // What is updated on the host has no place at rest on the device.
  View slice = owner.hostStep()
                   ? View{gradientBuffer(owner, type, ".gradient", MemoryClass::gradients, Tag::of(op)), 0,
                          elementOf(type)}
                   : owner.gradientSlice();
  program.transfer({.transfer = Transfer::reduce_scatter,
                    .stream = Stream::reduce,
                    .axis = Axis::shard,
                    .unit = unit,
                    .from = places[op.getFlat()],
                    .to = slice},
                   Tag::of(op));
  places[op.getSlice()] = slice;
}

void FunctionLowering::lowerAllReduce(AllReduceOp op) {
  View place =
      isa<RankedTensorType>(op.getX().getType()) ? placeResult(op->getOpResult(0)) : places[op.getX()];
  // What is summed over shards already goes beside the next sum over shards, mostly over other links.
  bool isSecondSum = isa<mlir::ft::SliceType>(op.getX().getType()) && op.getAxis() == Axis::replica;
  program.transfer({.transfer = Transfer::all_reduce,
                    .stream = isSecondSum ? Stream::replica : Stream::reduce,
                    .axis = op.getAxis(),
                    .unit = unitOf(op.getX().getType()),
                    .from = place,
                    .to = View()},
                   Tag::of(op));
  places[op.getResult()] = place;
}

void FunctionLowering::lowerDistribute(DistributeOp op) {
  SmallVector<View> slices, wholes;
  for (Value slice : op.getSlices())
    slices.push_back(places[slice]);
  auto value = op.getValues().begin();
  for (int64_t count : op.getGroups())
    for (int64_t index = 0; index < count; ++index, ++value) {
      auto type = cast<RankedTensorType>((*value).getType());
      shares[*value] = {index, count};
      Value buffer = program.buffer(op.getLoc(), {.name = "distributed",
                                                  .memoryClass = MemoryClass::staging,
                                                  .bytes = bytesOf(type),
                                                  .share = shares[*value]});
      wholes.push_back(places[*value] = {buffer, 0, type});
    }
  program.allToAll(slices, wholes, op.getParameters(), Tag::of(op));
}

void FunctionLowering::lowerCollect(CollectOp op) {
  Tag tag = Tag::of(op);
  Builder builder(op.getContext());
  SmallVector<View> slices, wholes;
  for (Value slice : op.getSlices()) {
    const UnitState &unit = state.unit(unitOf(slice.getType()).getValue());
    Value buffer = gradientBuffer(unit, slice.getType(), ".collected", MemoryClass::staging, tag);
    slices.push_back(places[slice] = {buffer, 0, elementOf(slice.getType())});
    program.kernel({.name = "fill",
                    .outs = {slices.back()},
                    .attributes = {builder.getNamedAttr("value", builder.getF64FloatAttr(0.0))}},
                   tag);
  }
  for (Value value : op.getValues())
    wholes.push_back(places[value]);
  program.allToAll(wholes, slices, op.getParameters(), tag);
}

void FunctionLowering::refresh(const UnitState &unit, const Tag &tag) {
  View atRest = unit.atRest(unit.compute), whole = atRest;
  bool onHost = isOnHost(atRest);
  if (onHost)
    whole = makeLike(atRest, "refreshed", MemoryClass::staging, tag);
  auto ownOf = [](View view) {
    view.own = true;
    return view;
  };
  if (onHost)
    copyIn(ownOf(atRest), ownOf(whole), tag);
  program.transfer({.transfer = Transfer::all_gather,
                    .stream = Stream::gather,
                    .axis = Axis::shard,
                    .unit = unit.symbol(),
                    .from = ownOf(whole),
                    .to = whole},
                   tag);
  if (onHost)
    copyOut(whole, atRest, tag);
}

void FunctionLowering::lowerOffload(OffloadOp op) {
  View here = places[op.getX()];
  auto type = cast<RankedTensorType>(op.getX().getType());
  Tag tag = Tag::of(op);
  Value buffer = program.buffer(op.getLoc(),
                                {.name = here.buffer.getDefiningOp<BufferOp>().getName().str() + ".offloaded",
                                 .memoryClass = MemoryClass::activations,
                                 .bytes = bytesOf(type),
                                 .host = true,
                                 .layer = tag.layer});
  View there{buffer, 0, type};
  copyOut(here, there, tag);
  places[op.getThere()] = there;
}

void FunctionLowering::lowerReload(ReloadOp op) {
  View there = places[op.getThere()];
  auto type = cast<RankedTensorType>(op.getX().getType());
  Tag tag = Tag::of(op);
  Value buffer = program.buffer(op.getLoc(),
                                {.name = there.buffer.getDefiningOp<BufferOp>().getName().str() + ".reloaded",
                                 .memoryClass = MemoryClass::activations,
                                 .bytes = bytesOf(type),
                                 .layer = tag.layer});
  View here{buffer, 0, type};
  copyIn(there, here, tag);
  places[op.getX()] = here;
}

} // namespace ft::compiler
