#include "compiler/encode/encode.h"

#include "mlir/IR/TypeUtilities.h"
#include "runtime/plan/all_to_all.h"

namespace ft::compiler {

using namespace mlir;
using namespace mlir::ftx;

namespace {

proto::Stream streamOf(Stream stream) { return static_cast<proto::Stream>(stream); }

class ProgramEncoder {
public:
  ProgramEncoder(ProgramOp program, const Numbering &numbers, proto::Program &out)
      : program(program), numbers(numbers), out(out) {}

  LogicalResult run() {
    out.set_name(program.getSymName().str());
    for (Operation &op : program.getBody().front()) {
      if (auto input = dyn_cast<InputOp>(op)) {
        if (failed(encodePort(input, *out.add_inputs())))
          return failure();
      } else if (auto output = dyn_cast<OutputOp>(op)) {
        if (failed(encodePort(output, *out.add_outputs())))
          return failure();
      } else if (isInstruction(&op)) {
        if (failed(encodeInstruction(&op, *out.add_instructions())))
          return failure();
      }
    }
    return success();
  }

private:
  template <typename PortOp> LogicalResult encodePort(PortOp op, proto::Port &port) {
    port.set_name(op.getName().str());
    if constexpr (std::is_same_v<PortOp, OutputOp>)
      port.set_counted(op.getCounted());
    return encodeOperand(op, {op.getBuffer(), 0, op.getType()}, *port.mutable_operand());
  }

  LogicalResult encodeInstruction(Operation *op, proto::Instruction &instruction) {
    uint32_t index = out.instructions_size() - 1;
    auto setTag = [&](auto tagged) {
      instruction.set_layer(tagged.getLayer().value_or("").str());
      instruction.set_phase(tagged.getPhase().value_or("").str());
    };
    if (auto kernel = dyn_cast<KernelOp>(op)) {
      setTag(kernel);
      lastOnCompute = index;
      return encodeKernel(kernel, instruction);
    }
    if (auto launch = dyn_cast<LaunchOp>(op)) {
      setTag(launch);
      starts[launch.getToken()] = index;
      instruction.set_reason(launch.getReason().value_or("").str());
      encodeAfterCompute(launch.getStream(), instruction);
      return encodeAnyKernel(launch, instruction);
    }
    if (auto start = dyn_cast<StartOp>(op)) {
      setTag(start);
      starts[start.getToken()] = index;
      return encodeStart(start, instruction);
    }
    if (auto wait = dyn_cast<WaitOp>(op)) {
      instruction.set_opcode(proto::WAIT);
      instruction.set_stream(streamOf(wait.getStream()));
      instruction.add_after(starts.at(wait.getToken()));
      lastOnCompute = index;
      return success();
    }
    auto release = cast<ReleaseOp>(op);
    setTag(release);
    lastOnCompute = index;
    instruction.set_opcode(proto::RELEASE);
    instruction.set_stream(proto::COMPUTE);
    auto buffer = release.getBuffer().getDefiningOp<BufferOp>();
    if (buffer.getUnit() && failed(encodeUnit(op, *buffer.getUnit(), instruction)))
      return failure();
    return encodeOperand(op, {release.getBuffer(), 0, IntegerType::get(op->getContext(), 8)},
                         *instruction.add_in());
  }

  LogicalResult encodeKernel(KernelOp op, proto::Instruction &instruction) {
    instruction.set_model_flops(op.getModelFlops().value_or(0));
    if (Value workspace = op.getWorkspace()) {
      View bytes{workspace, 0, IntegerType::get(op.getContext(), 8)};
      if (failed(encodeOperand(op, bytes, *instruction.mutable_workspace())))
        return failure();
    }
    return encodeAnyKernel(op, instruction);
  }

  template <typename KernelLikeOp>
  LogicalResult encodeAnyKernel(KernelLikeOp op, proto::Instruction &instruction) {
    instruction.set_opcode(proto::KERNEL);
    instruction.set_stream(streamOf(op.getStream()));
    instruction.set_kernel(op.getKernel().str());
    instruction.set_flops(op.getFlops().value_or(0));
    instruction.set_bytes(op.getBytes().value_or(0));
    if (failed(encodeOperands(op, getViews(op.getIns(), op.getInViews()), *instruction.mutable_in())) ||
        failed(encodeOperands(op, getViews(op.getOuts(), op.getOutViews()), *instruction.mutable_out())))
      return failure();
    auto attributes = op.getKernelAttributes();
    for (NamedAttribute attribute : attributes ? attributes->getValue() : ArrayRef<NamedAttribute>()) {
      // A parameter, or the body that it runs.
      auto symbol = dyn_cast<FlatSymbolRefAttr>(attribute.getValue());
      if (symbol && !numbers.parameter(symbol.getValue()))
        instruction.set_cluster_plus_one(numbers.clusterPlusOne(symbol.getValue()));
      else if (failed(encodeAttribute(op, attribute, *instruction.add_attributes())))
        return failure();
    }
    return success();
  }

  LogicalResult encodeStart(StartOp op, proto::Instruction &instruction) {
    instruction.set_opcode(static_cast<proto::Opcode>(op.getTransfer()));
    instruction.set_stream(streamOf(op.getStream()));
    if (auto axis = op.getAxis())
      instruction.set_axis(static_cast<proto::Axis>(*axis));
    instruction.set_reason(op.getReason().value_or("").str());
    if (op.getUnit() && failed(encodeUnit(op, *op.getUnit(), instruction)))
      return failure();
    if (op.getParameters()) {
      proto::Attribute &moved = *instruction.add_attributes();
      moved.set_name(::ft::kMovedParameters);
      for (auto parameter : op.getParameters()->getAsRange<FlatSymbolRefAttr>())
        moved.mutable_ints()->add_values(*numbers.parameter(parameter.getValue()));
    }
    encodeAfterCompute(op.getStream(), instruction);
    if (failed(encodeOperands(op, getViews(op.getIns(), op.getInViews()), *instruction.mutable_in())))
      return failure();
    return encodeOperands(op, getViews(op.getOuts(), op.getOutViews()), *instruction.mutable_out());
  }

  /// A stream runs in order: what an earlier instruction of it has waited for needs no second wait.
  void encodeAfterCompute(Stream stream, proto::Instruction &instruction) {
    std::optional<uint32_t> &seen = seenByStream[static_cast<uint32_t>(stream)];
    if (!lastOnCompute || (seen && *seen >= *lastOnCompute))
      return;
    instruction.add_after(*lastOnCompute);
    seen = lastOnCompute;
  }

  LogicalResult encodeUnit(Operation *op, StringRef name, proto::Instruction &instruction) {
    auto unit = numbers.unit(name);
    if (!unit)
      return op->emitOpError() << "is about @" << name << ", which is no ft.unit";
    instruction.set_unit_plus_one(*unit + 1);
    return success();
  }

  LogicalResult encodeOperands(Operation *op, ArrayRef<View> views,
                               google::protobuf::RepeatedPtrField<proto::Operand> &operands) {
    for (const View &view : views)
      if (failed(encodeOperand(op, view, *operands.Add())))
        return failure();
    return success();
  }

  LogicalResult encodeOperand(Operation *op, const View &view, proto::Operand &operand) {
    if (!view.isPresent())
      return success();
    auto dtype = dtypeOf(getElementTypeOrSelf(view.type));
    if (!dtype)
      return op->emitOpError() << "has an operand of type " << view.type << ", which a plan cannot hold";
    operand.set_buffer_plus_one(numbers.buffer(view.buffer) + 1);
    operand.set_offset(view.offset);
    operand.set_dtype(*dtype);
    operand.set_whole(view.isWhole());
    operand.set_own_slice(view.isOwn());
    if (auto tensor = dyn_cast<RankedTensorType>(view.type))
      for (int64_t extent : tensor.getShape())
        operand.add_shape(extent);
    return success();
  }

  LogicalResult encodeAttribute(Operation *op, NamedAttribute attribute, proto::Attribute &out) {
    out.set_name(attribute.getName().str());
    Attribute value = attribute.getValue();
    if (auto parameter = dyn_cast<FlatSymbolRefAttr>(value))
      out.set_i(*numbers.parameter(parameter.getValue()));
    else if (auto flag = dyn_cast<BoolAttr>(value))
      out.set_i(flag.getValue() ? 1 : 0);
    else if (auto integer = dyn_cast<IntegerAttr>(value))
      out.set_i(integer.getInt());
    else if (auto real = dyn_cast<FloatAttr>(value))
      out.set_f(real.getValueAsDouble());
    else if (auto text = dyn_cast<StringAttr>(value))
      out.set_s(text.getValue().str());
    else if (auto list = dyn_cast<DenseI64ArrayAttr>(value))
      out.mutable_ints()->mutable_values()->Assign(list.asArrayRef().begin(), list.asArrayRef().end());
    else if (auto list = dyn_cast<DenseF64ArrayAttr>(value))
      out.mutable_reals()->mutable_values()->Assign(list.asArrayRef().begin(), list.asArrayRef().end());
    else
      return op->emitOpError() << "has attribute '" << attribute.getName()
                               << "' of a kind that a plan cannot hold";
    return success();
  }

  ProgramOp program;
  const Numbering &numbers;
  proto::Program &out;
  llvm::DenseMap<Value, uint32_t> starts; // by token
  std::optional<uint32_t> lastOnCompute;
  // The last of `compute` that each stream has waited for.
  std::array<std::optional<uint32_t>, proto::Stream_ARRAYSIZE> seenByStream;
};

} // namespace

LogicalResult encodeProgram(ProgramOp program, const Numbering &numbers, proto::Program &out) {
  return ProgramEncoder(program, numbers, out).run();
}

} // namespace ft::compiler
