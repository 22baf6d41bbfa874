#include "compiler/lower/function_lowering.h"

#include "dialects/ft/signature.h"
#include "llvm/ADT/TypeSwitch.h"

namespace ft::compiler {

using namespace mlir;
using namespace mlir::ft;
using mlir::ftx::BufferOp;
using mlir::ftx::MemoryClass;
using mlir::ftx::SizeKind;
using mlir::ftx::View;

namespace {

// What a training step returns, by position.
constexpr StringLiteral kTrainPorts[] = {"loss", "grad_norm", "counted"};

// The port of a result; empty when there is none.
StringRef resultPort(func::FuncOp function, unsigned result) {
  if (function.getSymName() == kSampleStepFunction)
    return result == 0 ? StringRef("sample_logits") : StringRef();
  if (function.getSymName() == kEvalStepFunction)
    return result == 0 ? StringRef("loss_sum") : outputName(function, result);
  return result < std::size(kTrainPorts) ? StringRef(kTrainPorts[result]) : StringRef();
}

// "transformer.h.0.matmul"
std::string nameOf(Operation *op) {
  StringAttr layer = getLayer(op);
  return (layer ? layer.getValue() + "." : Twine()).str() + op->getName().stripDialect().str();
}

// The reduction of a flat gradient; null when it is not reduced here.
Operation *reductionOf(Value flat) {
  auto reduction =
      llvm::find_if(flat.getUsers(), [](Operation *user) { return isa<ReduceScatterOp, AllReduceOp>(user); });
  return reduction == flat.getUsers().end() ? nullptr : *reduction;
}

} // namespace

bool isOnHost(const View &view) {
  auto buffer = view.buffer.getDefiningOp<BufferOp>();
  return buffer && buffer.getHost();
}

FunctionLowering::FunctionLowering(func::FuncOp function, JobState &state, ProgramBuilder &program)
    : function(function), state(state), program(program), uses(function) {}

LogicalResult FunctionLowering::run() {
  for (BlockArgument argument : function.getArguments()) {
    StringRef name = inputName(function, argument.getArgNumber());
    if (name.empty())
      return function.emitError() << "@" << function.getSymName() << " has an argument "
                                  << argument.getArgNumber() + 1 << " without a name";
    auto type = cast<RankedTensorType>(argument.getType());
    View view{state.port(name, type), 0, type};
    places[argument] = view;
    program.input(name, view);
  }
  for (Operation &op : function.getBody().front())
    if (failed(lower(&op)))
      return failure();
  return success();
}

std::optional<Share> FunctionLowering::shareOf(Value value) const {
  auto share = shares.find(value);
  return share == shares.end() ? std::nullopt : std::optional(share->second);
}

LogicalResult FunctionLowering::findShare(Operation *op) {
  if (shares.empty() || isa<CollectOp>(op))
    return success();
  std::optional<Share> share;
  for (Value operand : op->getOperands()) {
    std::optional<Share> own = shareOf(operand);
    if (own && share && *own != *share)
      return op->emitOpError("reads parameters that not the same ranks have");
    if (own)
      share = own;
  }
  if (share)
    for (Value result : op->getResults())
      shares[result] = *share;
  return success();
}

LogicalResult FunctionLowering::lower(Operation *op) {
  if (failed(findShare(op)))
    return failure();
  auto done = [](auto) { return success(); };
  return TypeSwitch<Operation *, LogicalResult>(op)
      .Case([&](InputOp op) { return lowerInput(op), done(op); })
      .Case([&](ShardOp op) {
        places[op.getSlice()] = state.unit(op.getUnit()).atRest(elementOf(op.getSlice().getType()));
        return success();
      })
      .Case([&](ViewOp op) { return lowerView(op); })
      .Case([&](PackOp op) { return lowerPack(op), done(op); })
      .Case([&](ReshapeOp op) { return lowerReshape(op), done(op); })
      .Case([&](GatherOp op) { return lowerGather(op), done(op); })
      .Case([&](FetchOp op) { return lowerFetch(op), done(op); })
      .Case([&](ReleaseOp op) { return program.release(places[op.getFlat()].buffer, Tag::of(op)), done(op); })
      .Case([&](ReduceScatterOp op) { return lowerReduceScatter(op), done(op); })
      .Case([&](AllReduceOp op) { return lowerAllReduce(op), done(op); })
      .Case([&](DistributeOp op) { return lowerDistribute(op), done(op); })
      .Case([&](CollectOp op) { return lowerCollect(op), done(op); })
      .Case([&](RefreshOp op) { return refresh(state.unit(op.getUnit()), Tag::of(op)), done(op); })
      .Case([&](OffloadOp op) { return lowerOffload(op), done(op); })
      .Case([&](ReloadOp op) { return lowerReload(op), done(op); })
      .Case([&](AccumulatorOp op) {
        return places[op.getFlat()] = state.sum(op.getName(), op.getFlat().getType()), done(op);
      })
      .Case([&](AccumulateOp op) { return lowerAccumulate(op); })
      .Case([&](AccumulatedOp op) { return lowerAccumulated(op); })
      .Case([&](UpdateScalerOp op) { return lowerUpdateScaler(op), done(op); })
      .Case([&](UpdateOp op) { return lowerUpdate(op), done(op); })
      .Case([&](LoadStateOp op) { return lowerLoadState(op), done(op); })
      .Case([&](StoreStateOp op) {
        return program.copy(places[op.getValue()], state.unit(op.getUnit()).wholeState(op.getState()),
                            Tag::of(op)),
               done(op);
      })
      .Case([&](InitOp op) { return lowerInit(op), done(op); })
      .Case([&](func::ReturnOp op) { return lowerReturn(op); })
      .Case([&](KernelOpInterface op) { return lowerKernel(op), done(op); })
      .Default([](Operation *op) {
        return op->emitOpError("cannot be scheduled; run the stages up to shard first");
      });
}

//===----------------------------------------------------------------------===//
// Where values are
//===----------------------------------------------------------------------===//

void FunctionLowering::lowerInput(InputOp op) {
  auto type = cast<RankedTensorType>(op.getValue().getType());
  View view{state.port(op.getName(), type), 0, type};
  places[op.getValue()] = view;
  program.input(op.getName(), view);
}

LogicalResult FunctionLowering::lowerView(ViewOp op) {
  ParameterOp parameter = state.parameter(op.getParameter());
  if (!parameter || !parameter.getOffset())
    return op.emitOpError() << "looks for @" << op.getParameter() << ", which is in no unit";
  int64_t offset =
      static_cast<int64_t>(*parameter.getOffset()) * bytesOf(getElementTypeOrSelf(op.getValue()));
  places[op.getValue()] = {places[op.getFlat()].buffer, offset, op.getValue().getType()};
  return success();
}

void FunctionLowering::lowerReshape(ReshapeOp op) {
  if (!uses.isAlias(op))
    return lowerKernel(op);
  View x = places[op.getX()];
  places[op.getResult()] = {x.buffer, x.offset, op.getResult().getType()};
}

void FunctionLowering::lowerPack(PackOp op) {
  Value flat = flatGradient(op);
  for (auto [index, value] : llvm::enumerate(op.getValues())) {
    View place = placeDestination({op, static_cast<unsigned>(index)}, value.getType());
    if (!liesIn(value, {op, static_cast<unsigned>(index)}, place))
      program.copy(places[value], place, Tag::of(op));
  }
  places[op.getFlat()] = {flat, 0, elementOf(op.getFlat().getType())};
}

/// A sum over micro-steps that nothing is added to lies there without being written.
bool FunctionLowering::liesIn(Value value, Destination destination, const View &place) const {
  std::optional<Destination> own = uses.destinationOf(value);
  View at = places.lookup(value);
  return (own && own->owner == destination.owner && own->index == destination.index) ||
         (at.buffer == place.buffer && at.offset == place.offset);
}

LogicalResult FunctionLowering::lowerReturn(func::ReturnOp op) {
  if (function.getSymName() == kInitFunction)
    finishInit();
  for (auto [index, value] : llvm::enumerate(op.getOperands())) {
    StringRef name = resultPort(function, index);
    if (name.empty())
      return function.emitError() << "@" << function.getSymName() << " has a result " << index + 1
                                  << " without a name";
    Destination here{op, static_cast<unsigned>(index)};
    View port = placeDestination(here, value.getType());
    if (!liesIn(value, here, port))
      program.copy(places[value], port, Tag::of(op));
    program.output(name, port, function.getResultAttr(index, kCountedAttr) != nullptr);
  }
  return success();
}

View FunctionLowering::placeDestination(Destination destination, Type type) {
  auto tensor = cast<RankedTensorType>(type);
  if (auto pack = dyn_cast<PackOp>(destination.owner)) {
    auto name = cast<FlatSymbolRefAttr>(pack.getParameters()[destination.index]);
    int64_t offset = *state.parameter(name.getValue()).getOffset() * bytesOf(tensor.getElementType());
    return {flatGradient(pack), offset, type};
  }
  auto returned = cast<RankedTensorType>(destination.owner->getOperand(destination.index).getType());
  return {state.port(resultPort(function, destination.index), returned), 0, type};
}

Value FunctionLowering::flatGradient(PackOp pack) {
  Value &buffer = flatGradients[pack];
  if (buffer)
    return buffer;
  Type flat = pack.getFlat().getType();
  if (auto sum = mlir::ft::microStepSumOf(pack.getFlat()))
    return buffer = state.sum(sum.getName(), flat).buffer;
  buffer = placeForReduction(pack.getFlat(), Tag::of(pack));
  program.kernel({.name = "zero_padding", .outs = {View{buffer, 0, elementOf(flat)}}}, Tag::of(pack));
  return buffer;
}

Value FunctionLowering::placeForReduction(Value flat, const Tag &tag) {
  const UnitState &unit = state.unit(unitOf(flat.getType()).getValue());
  Operation *reduction = reductionOf(flat);
  bool isReducedInPlace = isa_and_nonnull<AllReduceOp>(reduction);
  // Where reduced gradients stay whole, they are made and reduced in their place.
  if (reduction && !unit.hostStep() && (unit.wholeGradients() || isReducedInPlace))
    return unit.gradients().buffer;
  return gradientBuffer(unit, flat.getType(), ".flat_gradient",
                        isReducedInPlace ? MemoryClass::gradients : MemoryClass::staging, tag);
}

Value FunctionLowering::gradientBuffer(const UnitState &unit, Type type, StringRef name,
                                       MemoryClass memoryClass, const Tag &tag) {
  return program.buffer(tag.loc, {.name = (unit.name() + name).str(),
                                  .memoryClass = memoryClass,
                                  .bytes = bytesOf(elementOf(type)),
                                  .kind = isa<FlatType>(type) ? SizeKind::unit_full : SizeKind::unit_slice,
                                  .unit = unitOf(type),
                                  .layer = tag.layer});
}

//===----------------------------------------------------------------------===//
// Places of results
//===----------------------------------------------------------------------===//

View FunctionLowering::placeResult(OpResult result) {
  Operation *op = result.getOwner();
  Value tied = tiedOperand(op, result.getResultNumber());
  std::optional<Destination> destination = uses.destinationOf(result);
  if (tied && !destination && owns(tied) && shareOf(tied) == shareOf(result) && uses.canOverwrite(tied, op))
    return places[tied];
  if (!tied && !destination && canReuse(result))
    return places[cast<KernelOpInterface>(op).getReusableOperand(result.getResultNumber())];
  View place = destination ? placeDestination(*destination, result.getType()) : newBuffer(result);
  if (tied && (places[tied].buffer != place.buffer || places[tied].offset != place.offset))
    program.copy(places[tied], place, Tag::of(op));
  return place;
}

/// A buffer that holds nothing but `value`: neither a view of a parameter nor a port nor a part of a flat
/// gradient.
bool FunctionLowering::owns(Value value) const {
  auto buffer = places.lookup(value).buffer.getDefiningOp<BufferOp>();
  return !buffer.getPersistent() && !buffer.getUnit();
}

bool FunctionLowering::canReuse(OpResult result) const {
  Operation *op = result.getOwner();
  auto kernel = dyn_cast<KernelOpInterface>(op);
  Value operand = kernel ? kernel.getReusableOperand(result.getResultNumber()) : Value();
  if (!operand || !owns(operand) || shareOf(operand) != shareOf(result) || !uses.diesAt(operand, op))
    return false;
  if (bytesOf(cast<RankedTensorType>(operand.getType())) != bytesOf(cast<RankedTensorType>(result.getType())))
    return false;
  // One operand, one heir: an earlier result may have taken it.
  return llvm::none_of(op->getResults().take_front(result.getResultNumber()), [&](OpResult earlier) {
    return kernel.getReusableOperand(earlier.getResultNumber()) == operand;
  });
}

View FunctionLowering::newBuffer(OpResult result) {
  auto type = cast<RankedTensorType>(result.getType());
  // Sums, counts and scalars of the optimizer's; integers of a model are activations.
  bool isCount = type.getElementType().isInteger(64) && type.getNumElements() <= mlir::ft::kAccumulatorWords;
  bool scalar = type.getRank() == 0 || isCount || isa<UpdateScalarsOp>(result.getOwner());
  Value buffer =
      program.buffer(result.getLoc(), {.name = nameOf(result.getOwner()),
                                       .memoryClass = scalar ? MemoryClass::io : MemoryClass::activations,
                                       .bytes = bytesOf(type),
                                       .layer = getLayer(result.getOwner()),
                                       .share = shareOf(result)});
  return {buffer, 0, type};
}

} // namespace ft::compiler
