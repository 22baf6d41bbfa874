#include "compiler/schedule/function_lowering.h"

#include "llvm/ADT/TypeSwitch.h"

namespace ft::compiler {

using namespace mlir;
using namespace mlir::ft;
using mlir::ftx::Axis;
using mlir::ftx::BufferOp;
using mlir::ftx::Collective;
using mlir::ftx::MemoryClass;
using mlir::ftx::SizeKind;
using mlir::ftx::Stream;
using mlir::ftx::View;

namespace {

// What the function takes and returns, by position.
constexpr StringLiteral kArgumentPorts[] = {"tokens", "targets"};
constexpr StringLiteral kResultPorts[] = {"loss", "grad_norm"};

FlatSymbolRefAttr unitOf(Type type) {
  return TypeSwitch<Type, FlatSymbolRefAttr>(type)
      .Case<FlatType, SliceType>([](auto flat) { return flat.getUnit(); })
      .Default(FlatSymbolRefAttr());
}

View wholeOf(Value buffer, Type flatOrSlice) {
  Type element = TypeSwitch<Type, Type>(flatOrSlice).Case<FlatType, SliceType>([](auto flat) {
    return flat.getElementType();
  });
  return {buffer, 0, element};
}

// The axis that the shard phase has chosen.
std::optional<Axis> findAxis(Operation *op) {
  auto name = op->getAttrOfType<StringAttr>("axis");
  return name ? ftx::symbolizeAxis(name.getValue()) : std::nullopt;
}

// Of an op that has passed FunctionLowering::lower.
Axis axisOf(Operation *op) { return *findAxis(op); }

// Inherent attributes, sorted by name, absent unit attributes as false: a kernel finds all that its op
// declares.
SmallVector<NamedAttribute> kernelAttributes(Operation *op) {
  Builder builder(op->getContext());
  SmallVector<NamedAttribute> result;
  for (StringAttr name : op->getName().getAttributeNames()) {
    if (name.getValue() == "operandSegmentSizes")
      continue;
    Attribute value = op->getInherentAttr(name).value_or(Attribute());
    if (!value || isa<UnitAttr>(value))
      value = builder.getBoolAttr(static_cast<bool>(value));
    result.emplace_back(name, value);
  }
  return result;
}

template <unsigned... N> bool hasMoreDeclaredOperands(Operation *op, std::integer_sequence<unsigned, N...>) {
  return (
      (op->getNumOperands() == N + 1 && op->hasTrait<OpTrait::AtLeastNOperands<N + 1>::template Impl>()) ||
      ...);
}

// Operands in the order of their declaration, null for an optional one that is absent. Ops with several
// optional operands count their segments; with one, which is the last, its absence shows in the trait that
// gives the least number of operands.
SmallVector<Value> declaredOperands(Operation *op) {
  SmallVector<Value> result;
  auto segments =
      dyn_cast_or_null<DenseI32ArrayAttr>(op->getInherentAttr("operandSegmentSizes").value_or(Attribute()));
  if (!segments) {
    llvm::append_range(result, op->getOperands());
    if (hasMoreDeclaredOperands(op, std::make_integer_sequence<unsigned, 8>()))
      result.push_back(Value());
    return result;
  }
  unsigned next = 0;
  for (int32_t length : segments.asArrayRef()) {
    if (length == 0)
      result.push_back(Value());
    for (int32_t i = 0; i < length; ++i)
      result.push_back(op->getOperand(next++));
  }
  return result;
}

// "transformer.h.0.matmul"
std::string nameOf(Operation *op) {
  StringAttr layer = getLayer(op);
  return (layer ? layer.getValue() + "." : Twine()).str() + op->getName().stripDialect().str();
}

} // namespace

FunctionLowering::FunctionLowering(func::FuncOp function, JobState &state, ProgramBuilder &program)
    : function(function), state(state), program(program), placement(function) {}

LogicalResult FunctionLowering::run() {
  for (BlockArgument argument : function.getArguments()) {
    if (argument.getArgNumber() >= std::size(kArgumentPorts))
      return function.emitError() << "@" << function.getSymName() << " takes (tokens, targets), not "
                                  << function.getNumArguments() << " arguments";
    StringRef name = kArgumentPorts[argument.getArgNumber()];
    auto type = cast<RankedTensorType>(argument.getType());
    View view{state.port(name, type), 0, type};
    places[argument] = view;
    program.input(name, view);
  }
  if (function.getNumResults() > std::size(kResultPorts))
    return function.emitError() << "@" << function.getSymName() << " returns (loss, gradient norm), not "
                                << function.getNumResults() << " values";
  for (Operation &op : function.getBody().front())
    if (failed(lower(&op)))
      return failure();
  return success();
}

LogicalResult FunctionLowering::lower(Operation *op) {
  auto done = [](auto) { return success(); };
  if (isa<GatherOp, ReduceScatterOp, AllReduceOp>(op) && !findAxis(op))
    return op->emitOpError("needs an attribute 'axis', \"shard\", \"replica\" or \"world\": the ranks that "
                           "take part; run ft-insert-collectives");
  return TypeSwitch<Operation *, LogicalResult>(op)
      .Case([&](InputOp op) { return lowerInput(op), done(op); })
      .Case([&](ShardOp op) { return lowerShard(op), done(op); })
      .Case([&](ViewOp op) { return lowerView(op); })
      .Case([&](PackOp op) { return lowerPack(op), done(op); })
      .Case([&](GatherOp op) { return lowerGather(op), done(op); })
      .Case([&](ReleaseOp op) { return program.release(places[op.getFlat()].buffer, Tag::of(op)), done(op); })
      .Case([&](ReduceScatterOp op) { return lowerReduceScatter(op), done(op); })
      .Case([&](AllReduceOp op) { return lowerAllReduce(op), done(op); })
      .Case([&](AdamwOp op) { return lowerAdamw(op), done(op); })
      .Case([&](InitOp op) { return lowerInit(op), done(op); })
      .Case([&](func::ReturnOp op) { return lowerReturn(op), done(op); })
      .Case([&](KernelOpInterface op) { return lowerKernel(op), done(op); })
      .Default([](Operation *op) {
        return op->emitOpError("cannot be scheduled; run the phases up to shard first");
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

void FunctionLowering::lowerShard(ShardOp op) {
  places[op.getSlice()] = wholeOf(state.unit(op.getUnit()).values, op.getSlice().getType());
}

LogicalResult FunctionLowering::lowerView(ViewOp op) {
  ParameterOp parameter = state.parameter(op.getParameter());
  if (!parameter || !parameter.getOffset())
    return op.emitOpError() << "looks for @" << op.getParameter() << ", which is in no unit";
  int64_t elementBytes = getElementTypeOrSelf(op.getValue()).getIntOrFloatBitWidth() / 8;
  int64_t offset = static_cast<int64_t>(*parameter.getOffset()) * elementBytes;
  places[op.getValue()] = {places[op.getFlat()].buffer, offset, op.getValue().getType()};
  return success();
}

void FunctionLowering::lowerPack(PackOp op) {
  Value flat = flatGradient(op);
  for (auto [index, value] : llvm::enumerate(op.getValues())) {
    View place = placeHome({op, static_cast<unsigned>(index)}, value.getType());
    std::optional<Home> home = placement.homeOf(value);
    if (!home || home->owner != op || home->index != index)
      program.copy(places[value], place, Tag::of(op));
  }
  places[op.getFlat()] = wholeOf(flat, op.getFlat().getType());
}

void FunctionLowering::lowerReturn(func::ReturnOp op) {
  for (auto [index, value] : llvm::enumerate(op.getOperands())) {
    Home here{op, static_cast<unsigned>(index)};
    View port = placeHome(here, value.getType());
    std::optional<Home> home = placement.homeOf(value);
    if (!home || home->owner != op || home->index != index)
      program.copy(places[value], port, Tag::of(op));
    program.output(kResultPorts[index], port);
  }
}

View FunctionLowering::placeHome(Home home, Type type) {
  auto tensor = cast<RankedTensorType>(type);
  if (auto pack = dyn_cast<PackOp>(home.owner)) {
    auto name = cast<FlatSymbolRefAttr>(pack.getParameters()[home.index]);
    int64_t offset = *state.parameter(name.getValue()).getOffset() * (tensor.getElementTypeBitWidth() / 8);
    return {flatGradient(pack), offset, type};
  }
  return {state.port(kResultPorts[home.index], tensor), 0, type};
}

Value FunctionLowering::flatGradient(PackOp pack) {
  Value &buffer = flatGradients[pack];
  if (buffer)
    return buffer;
  const UnitState &unit = state.unit(unitOf(pack.getFlat().getType()).getValue());
  Tag tag = Tag::of(pack);
  bool scattered =
      llvm::any_of(pack.getFlat().getUsers(), [](Operation *user) { return isa<ReduceScatterOp>(user); });
  if (scattered)
    buffer = program.buffer(pack.getLoc(), {.name = (unit.name() + ".flat_gradient").str(),
                                            .memoryClass = MemoryClass::staging,
                                            .bytes = kMasterBytes,
                                            .kind = SizeKind::unit_full,
                                            .unit = unitOf(pack.getFlat().getType()),
                                            .layer = tag.layer});
  else
    buffer = unit.gradients;
  Builder builder(pack.getContext());
  NamedAttribute segments = builder.getNamedAttr("segments", builder.getDenseI64ArrayAttr(unit.segments()));
  program.kernel({.name = "zero_padding",
                  .ins = {},
                  .outs = {wholeOf(buffer, pack.getFlat().getType())},
                  .workspace = {},
                  .attributes = {segments}},
                 tag);
  return buffer;
}

//===----------------------------------------------------------------------===//
// Communication
//===----------------------------------------------------------------------===//

void FunctionLowering::lowerGather(GatherOp op) {
  FlatSymbolRefAttr unit = unitOf(op.getFlat().getType());
  Tag tag = Tag::of(op);
  Value buffer = program.buffer(op.getLoc(), {.name = (unit.getValue() + ".gathered").str(),
                                              .memoryClass = MemoryClass::gathered,
                                              .bytes = kMasterBytes,
                                              .kind = SizeKind::unit_full,
                                              .unit = unit,
                                              .layer = tag.layer});
  View whole = wholeOf(buffer, op.getFlat().getType());
  program.collective(Collective::all_gather, Stream::gather, axisOf(op), unit, places[op.getSlice()], whole,
                     tag);
  places[op.getFlat()] = whole;
}

void FunctionLowering::lowerReduceScatter(ReduceScatterOp op) {
  FlatSymbolRefAttr unit = unitOf(op.getSlice().getType());
  View slice = wholeOf(state.unit(unit.getValue()).gradients, op.getSlice().getType());
  program.collective(Collective::reduce_scatter, Stream::reduce, axisOf(op), unit, places[op.getFlat()],
                     slice, Tag::of(op));
  places[op.getSlice()] = slice;
}

void FunctionLowering::lowerAllReduce(AllReduceOp op) {
  View place =
      isa<RankedTensorType>(op.getX().getType()) ? placeResult(op->getOpResult(0)) : places[op.getX()];
  program.collective(Collective::all_reduce, Stream::reduce, axisOf(op), unitOf(op.getX().getType()), place,
                     View(), Tag::of(op));
  places[op.getResult()] = place;
}

//===----------------------------------------------------------------------===//
// Computation
//===----------------------------------------------------------------------===//

void FunctionLowering::lowerKernel(KernelOpInterface op) {
  KernelSpec spec{
      .name = op.getKernelName(), .ins = {}, .outs = {}, .workspace = {}, .attributes = kernelAttributes(op)};
  llvm::SmallDenseMap<Value, View> accumulated;
  for (OpResult result : op->getResults()) {
    View place = placeResult(result);
    if (Value operand = tiedOperand(op, result.getResultNumber()))
      accumulated[operand] = place; // the kernel finds there what it adds to
    places[result] = place;
    spec.outs.push_back(place);
  }
  for (Value operand : declaredOperands(op)) {
    auto tied = accumulated.find(operand);
    spec.ins.push_back(!operand ? View() : tied != accumulated.end() ? tied->second : places[operand]);
  }
  if (uint64_t bytes = op.getWorkspaceBytes())
    spec.workspace = program.buffer(op.getLoc(), {.name = nameOf(op) + ".workspace",
                                                  .memoryClass = MemoryClass::workspace,
                                                  .bytes = static_cast<int64_t>(bytes),
                                                  .layer = getLayer(op)});
  if (auto cost = dyn_cast<CostOpInterface>(op.getOperation())) {
    spec.flops = cost.getFlops();
    spec.bytes = cost.getBytes();
  }
  program.kernel(spec, Tag::of(op));
}

void FunctionLowering::lowerAdamw(AdamwOp op) {
  const UnitState &unit = state.unit(op.getUnit());
  Type f32 = Float32Type::get(op.getContext());
  KernelSpec spec{
      .name = "adamw", .ins = {}, .outs = {}, .workspace = {}, .attributes = kernelAttributes(op)};
  llvm::erase_if(spec.attributes,
                 [](NamedAttribute attr) { return isa<FlatSymbolRefAttr>(attr.getValue()); });
  for (Value operand : op->getOperands())
    spec.ins.push_back(places[operand]);
  spec.outs = {View{unit.values, 0, f32}, View{unit.expAvg, 0, f32}, View{unit.expAvgSq, 0, f32}};
  spec.flops = op.getFlops();
  spec.bytes = op.getBytes();
  program.kernel(spec, Tag::of(op));
}

void FunctionLowering::lowerInit(InitOp op) {
  ParameterOp parameter = state.parameter(op.getParameter());
  const UnitState &unit = state.unit(*parameter.getUnit());
  Builder builder(op.getContext());
  int64_t begin = *parameter.getOffset();
  int64_t elements = cast<RankedTensorType>(parameter.getType()).getNumElements();
  bool normal = parameter.getInit().getKind() == InitKind::normal;
  program.kernel(
      {.name = normal ? "init_normal" : "init_constant",
       .ins = {places[op.getRng()]},
       .outs = {View{unit.values, 0, builder.getF32Type()}},
       .workspace = {},
       .attributes = {builder.getNamedAttr("begin", builder.getI64IntegerAttr(begin)),
                      builder.getNamedAttr("end", builder.getI64IntegerAttr(begin + elements)),
                      builder.getNamedAttr("stream", builder.getI64IntegerAttr(op.getStream())),
                      builder.getNamedAttr("value", builder.getF64FloatAttr(parameter.getInit().getValue()))},
       .bytes = static_cast<uint64_t>(elements) * kMasterBytes},
      {op.getLoc(), parameter.getLayerAttr(), getPhase(op)});
}

//===----------------------------------------------------------------------===//
// Places of results
//===----------------------------------------------------------------------===//

View FunctionLowering::placeResult(OpResult result) {
  Operation *op = result.getOwner();
  Value tied = tiedOperand(op, result.getResultNumber());
  std::optional<Home> home = placement.homeOf(result);
  if (tied && !home && owns(tied) && placement.canOverwrite(tied, op))
    return places[tied];
  if (!tied && !home && canReuse(result))
    return places[cast<KernelOpInterface>(op).getReusableOperand(result.getResultNumber())];
  View place = home ? placeHome(*home, result.getType()) : newBuffer(result);
  if (tied && (places[tied].buffer != place.buffer || places[tied].offset != place.offset))
    program.copy(places[tied], place, Tag::of(op));
  return place;
}

/// A buffer that holds nothing but `value`: neither a view of a parameter nor a port nor a part of a flat
/// gradient.
bool FunctionLowering::owns(Value value) const {
  auto buffer = places.lookup(value).buffer.getDefiningOp<BufferOp>();
  return !buffer.getPersistent() && buffer.getSizeKind() == SizeKind::constant;
}

bool FunctionLowering::canReuse(OpResult result) const {
  Operation *op = result.getOwner();
  auto kernel = dyn_cast<KernelOpInterface>(op);
  Value operand = kernel ? kernel.getReusableOperand(result.getResultNumber()) : Value();
  if (!operand || !owns(operand) || !placement.diesAt(operand, op))
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
  bool scalar = type.getRank() == 0 || type.getElementType().isInteger(64);
  Value buffer =
      program.buffer(result.getLoc(), {.name = nameOf(result.getOwner()),
                                       .memoryClass = scalar ? MemoryClass::io : MemoryClass::activations,
                                       .bytes = bytesOf(type),
                                       .layer = getLayer(result.getOwner())});
  return {buffer, 0, type};
}

} // namespace ft::compiler
