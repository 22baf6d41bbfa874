#include "test/support/interpreter.h"

#include <cstring>
#include <map>
#include <memory>

#include "absl/strings/str_cat.h"
#include "compiler/codegen/cluster_body.h"
#include "dialects/ft/clusters.h"
#include "dialects/ft/dialect.h"
#include "dialects/ft/signature.h"
#include "runtime/backends/cpu/cpu_kernel.h"
#include "runtime/base/device_class.h"
#include "runtime/base/status_macros.h"

namespace mlir::ft::test {
namespace {

using ::ft::DType;

constexpr size_t kAlignment = 64;  // bytes, as the arena aligns
constexpr size_t kGuardBytes = 64;
constexpr unsigned char kPoison = 0xff;  // f32 and f64: NaN; indices: -1
constexpr unsigned char kGuard = 0xa5;

// Bytes with a guard behind them.
class Buffer {
 public:
  explicit Buffer(size_t bytes) : bytes(bytes), storage(kAlignment + bytes + kGuardBytes, kGuard) {
    auto address = reinterpret_cast<uintptr_t>(storage.data());
    offset = kAlignment - address % kAlignment;
    std::fill_n(storage.begin() + offset, bytes, kPoison);
  }
  unsigned char* data() { return storage.data() + offset; }
  size_t size() const { return bytes; }
  bool intact() const {
    auto guard = llvm::ArrayRef(storage).drop_front(offset + bytes);
    return llvm::all_of(guard, [](unsigned char c) { return c == kGuard; });
  }

 private:
  size_t bytes;
  std::vector<unsigned char> storage;
  size_t offset;
};

absl::StatusOr<DType> dtypeOf(Type element) {
  if (element.isF32()) return DType::kF32;
  if (element.isInteger(1)) return DType::kU8;
  if (element.isInteger(32)) return DType::kI32;
  if (element.isInteger(64)) return DType::kI64;
  return absl::InvalidArgumentError("the interpreter runs f32, i1, i32 and i64 only");
}

absl::StatusOr<::ft::Tensor> describe(Type type) {
  auto ranked = cast<RankedTensorType>(type);
  ::ft::Tensor tensor;
  FT_ASSIGN_OR_RETURN(tensor.dtype, dtypeOf(ranked.getElementType()));
  tensor.rank = ranked.getRank();
  llvm::copy(ranked.getShape(), tensor.dims.begin());
  return tensor;
}

size_t bytesOf(const ::ft::Tensor& tensor) { return tensor.elements() * ::ft::SizeOf(tensor.dtype); }

// How many operand places the op's declaration has, when at most the last of them is optional.
template <unsigned... counts>
unsigned placesOf(Operation* op, std::integer_sequence<unsigned, counts...>) {
  unsigned required = 0;
  ((op->hasTrait<OpTrait::AtLeastNOperands<counts + 1>::template Impl>() ? void(required = counts + 1)
                                                                         : void()),
   ...);
  bool lastIsOptional = required > 0 && op->getNumOperands() <= required + 1;
  return lastIsOptional ? required + 1 : op->getNumOperands();
}

// The operands in the places of the declaration; null where an optional one is absent.
std::vector<Value> operandPlaces(Operation* op) {
  std::vector<Value> places;
  if (auto segments = op->getInherentAttr("operandSegmentSizes"); segments && *segments) {
    unsigned next = 0;
    for (int32_t size : cast<DenseI32ArrayAttr>(*segments).asArrayRef())
      places.push_back(size == 0 ? Value() : op->getOperand(next++));
    return places;
  }
  places.assign(op->operand_begin(), op->operand_end());
  places.resize(placesOf(op, std::make_integer_sequence<unsigned, 6>()));
  return places;
}

class Interpreter {
 public:
  Interpreter(const ::ft::KernelRegistry& kernels, const NamedArrays& parameters, const StepInputs& inputs)
      : kernels(kernels), parameters(parameters), inputs(inputs) {}

  absl::StatusOr<StepResult> run(Block& block) {
    auto function = cast<func::FuncOp>(block.getParentOp());
    for (BlockArgument argument : block.getArguments())
      FT_RETURN_IF_ERROR(load(argument, inputs.of(inputName(function, argument.getArgNumber()).str())));
    for (Operation& op : block.without_terminator()) {
      absl::Status status = execute(op);
      if (!status.ok())
        return absl::Status(status.code(),
                            absl::StrCat(op.getName().getStringRef().str(), ": ", status.message()));
    }
    result.loss = unload(block.getTerminator()->getOperand(0)).data[0];
    return std::move(result);
  }

 private:
  absl::Status execute(Operation& op) {
    if (auto get = dyn_cast<GetOp>(op)) return loadNamed(get.getValue(), parameters, get.getParameter());
    if (auto input = dyn_cast<InputOp>(op))
      return loadNamed(input.getValue(), inputs.inputs, input.getName());
    if (auto gradient = dyn_cast<GradientOp>(op)) {
      result.gradients[gradient.getParameter().str()] = unload(gradient.getValue());
      return absl::OkStatus();
    }
    auto kernelOp = dyn_cast<KernelOpInterface>(op);
    if (!kernelOp) return absl::InvalidArgumentError("has no kernel");
    return runKernel(op, kernelOp);
  }

  absl::Status runKernel(Operation& op, KernelOpInterface kernelOp) {
    ::ft::KernelFactory factory = kernels.Find(kernelOp.getKernelName().str());
    if (!factory)
      return absl::NotFoundError(absl::StrCat("no kernel '", kernelOp.getKernelName().str(), "'"));
    FT_ASSIGN_OR_RETURN(::ft::KernelAttributes attributes, kernelAttributes(&op));

    for (OpResult value : op.getResults()) FT_RETURN_IF_ERROR(place(value, kernelOp));
    ::ft::KernelOperands operands;
    for (Value value : operandPlaces(&op)) {
      ::ft::Tensor tensor;
      if (value) {
        FT_ASSIGN_OR_RETURN(tensor, describe(value.getType()));
        tensor.data = buffers.at(addressedAs(op, kernelOp, value))->data();
      }
      operands.in.push_back(tensor);
    }
    for (Value value : op.getResults()) {
      FT_ASSIGN_OR_RETURN(::ft::Tensor tensor, describe(value.getType()));
      tensor.data = buffers.at(value)->data();
      operands.out.push_back(tensor);
    }
    Buffer workspace(kernelOp.getWorkspaceBytes(::ft::DeviceClass::kCpu));
    operands.workspace.dtype = DType::kU8;
    operands.workspace.rank = 1;
    operands.workspace.dims[0] = workspace.size();
    if (workspace.size() > 0) operands.workspace.data = workspace.data();

    FT_ASSIGN_OR_RETURN(std::unique_ptr<::ft::Kernel> kernel,
                        factory(operands, attributes, {.num_threads = 2}));
    static_cast<::ft::CpuKernel&>(*kernel).Run();
    for (Value value : op.getResults())
      if (!buffers.at(value)->intact()) return absl::InternalError("wrote behind the end of a result");
    if (!workspace.intact()) return absl::InternalError("wrote behind the end of its workspace");
    return absl::OkStatus();
  }

  // Gives a result its buffer: the dying reusable operand's, a copy of the tied operand, or a fresh one.
  absl::Status place(OpResult value, KernelOpInterface kernelOp) {
    Value reusable = kernelOp.getReusableOperand(value.getResultNumber());
    if (reusable && diesAt(reusable, *value.getOwner()) && !isTaken(reusable, *value.getOwner())) {
      buffers[value] = buffers.at(reusable);
      return absl::OkStatus();
    }
    FT_ASSIGN_OR_RETURN(::ft::Tensor tensor, describe(value.getType()));
    buffers[value] = std::make_shared<Buffer>(bytesOf(tensor));
    if (Value tied = kernelOp.getTiedOperand(value.getResultNumber()))
      std::memcpy(buffers[value]->data(), buffers.at(tied)->data(), bytesOf(tensor));
    return absl::OkStatus();
  }

  // Parameters, inputs and what is returned have buffers that others own.
  static bool diesAt(Value value, Operation& op) {
    if (!value.getDefiningOp() || isa<GetOp, InputOp>(value.getDefiningOp())) return false;
    return llvm::all_of(value.getUsers(),
                        [&](Operation* user) { return user == &op || user->isBeforeInBlock(&op); });
  }

  // Whether an earlier result of the op has the operand's buffer already.
  bool isTaken(Value operand, Operation& op) {
    return llvm::any_of(op.getResults(), [&](Value value) {
      auto it = buffers.find(value);
      return it != buffers.end() && it->second == buffers.at(operand);
    });
  }

  // A tied operand is handed over in the result's buffer.
  static Value addressedAs(Operation& op, KernelOpInterface kernelOp, Value operand) {
    for (OpResult value : op.getResults())
      if (kernelOp.getTiedOperand(value.getResultNumber()) == operand) return value;
    return operand;
  }

  absl::Status loadNamed(Value value, const NamedArrays& arrays, llvm::StringRef name) {
    auto array = arrays.find(name.str());
    if (array == arrays.end()) return absl::NotFoundError(absl::StrCat("no value for '", name.str(), "'"));
    return load(value, array->second);
  }

  absl::Status load(Value value, const Array& array) {
    FT_ASSIGN_OR_RETURN(::ft::Tensor tensor, describe(value.getType()));
    if (tensor.elements() != array.size())
      return absl::InvalidArgumentError(
          absl::StrCat(array.size(), " values for ", tensor.elements(), " elements"));
    auto buffer = std::make_shared<Buffer>(bytesOf(tensor));
    tensor.data = buffer->data();
    for (int64_t i = 0; i < array.size(); ++i) {
      if (tensor.dtype == DType::kF32) tensor.as<float>()[i] = array.data[i];
      if (tensor.dtype == DType::kI32) tensor.as<int32_t>()[i] = array.data[i];
      if (tensor.dtype == DType::kI64) tensor.as<int64_t>()[i] = array.data[i];
      if (tensor.dtype == DType::kU8) tensor.as<uint8_t>()[i] = array.data[i] != 0;
    }
    buffers[value] = buffer;
    return absl::OkStatus();
  }

  Array unload(Value value) {
    Array array(value.getType());
    auto* data = reinterpret_cast<const float*>(buffers.at(value)->data());
    array.data.assign(data, data + array.size());
    return array;
  }

  struct ValueOrder {
    bool operator()(Value a, Value b) const { return a.getAsOpaquePointer() < b.getAsOpaquePointer(); }
  };

  const ::ft::KernelRegistry& kernels;
  const NamedArrays& parameters;
  const StepInputs& inputs;
  std::map<Value, std::shared_ptr<Buffer>, ValueOrder> buffers;
  StepResult result;
};

}  // namespace

absl::StatusOr<::ft::KernelAttributes> kernelAttributes(Operation* op) {
  ::ft::KernelAttributes attributes;
  if (auto name = dyn_cast_or_null<FlatSymbolRefAttr>(op->getInherentAttr("body").value_or(Attribute()))) {
    auto function = SymbolTable::lookupNearestSymbolFrom<func::FuncOp>(op, name);
    FailureOr<::ft::ClusterBody> body = ::ft::compiler::clusterBodyOf(function);
    if (failed(body)) return absl::InvalidArgumentError("has no body");
    attributes.SetCluster(std::make_shared<const ::ft::Cluster>(::ft::Cluster{*std::move(body), {}, {}}));
    if (auto cluster = dyn_cast<ClusterOp>(op)) {
      if (auto streams = cluster.getStreams()) attributes.Add("streams", std::vector<int64_t>(*streams));
      return attributes;
    }
  }
  auto kernel = dyn_cast<KernelOpInterface>(op);
  ArrayRef<StringRef> optional = kernel ? kernel.getOptionalAttributes() : ArrayRef<StringRef>();
  for (StringAttr name : op->getName().getAttributeNames()) {
    if (name == "operandSegmentSizes" || name == "resultSegmentSizes" || name == "body") continue;
    Attribute value = op->getInherentAttr(name).value_or(Attribute());
    if (!value && llvm::is_contained(optional, name.getValue())) continue;
    if (!value || isa<UnitAttr>(value))
      attributes.Add(name.str(), int64_t{value != nullptr});
    else if (auto integer = dyn_cast<IntegerAttr>(value))
      attributes.Add(name.str(), integer.getInt());
    else if (auto real = dyn_cast<FloatAttr>(value))
      attributes.Add(name.str(), real.getValueAsDouble());
    else if (auto text = dyn_cast<StringAttr>(value))
      attributes.Add(name.str(), text.str());
    else if (auto list = dyn_cast<DenseI64ArrayAttr>(value))
      attributes.Add(name.str(), std::vector<int64_t>(list.asArrayRef()));
    else
      return absl::InvalidArgumentError(absl::StrCat("attribute '", name.str(), "' has no form in a plan"));
  }
  return attributes;
}

absl::StatusOr<StepResult> interpret(func::FuncOp function, const ::ft::KernelRegistry& kernels,
                                     const NamedArrays& parameters, const StepInputs& inputs) {
  return Interpreter(kernels, parameters, inputs).run(function.getBody().front());
}

}  // namespace mlir::ft::test
