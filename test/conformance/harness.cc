#include "test/conformance/harness.h"

#include <cmath>
#include <cstring>

#include "fmt/format.h"
#include "runtime/base/status_macros.h"

namespace ft::conformance {
namespace {

// A buffer with 64-byte alignment and a guard after its end.
class Buffer {
 public:
  explicit Buffer(size_t bytes) : bytes_(bytes), storage_(bytes + 64 + kGuard, std::byte{0xCD}) {}
  void* data() {
    const uintptr_t address = reinterpret_cast<uintptr_t>(storage_.data());
    return reinterpret_cast<void*>((address + 63) / 64 * 64);
  }
  bool GuardIntact() {
    const std::byte* guard = static_cast<std::byte*>(data()) + bytes_;
    for (size_t i = 0; i < kGuard; ++i) {
      if (guard[i] != std::byte{0xCD}) return false;
    }
    return true;
  }

 private:
  static constexpr size_t kGuard = 256;
  size_t bytes_;
  std::vector<std::byte> storage_;
};

// A number of a 16-bit type as its bits: sign, exponent, mantissa.
uint16_t ToBits(double value, DType dtype) {
  const int mantissa = dtype == DType::kBF16 ? 7 : 10, bias = dtype == DType::kBF16 ? 127 : 15;
  const int top = 2 * bias + 1, sign = std::signbit(value) ? 0x8000 : 0;
  const double magnitude = std::abs(value);
  if (std::isnan(value)) return static_cast<uint16_t>(sign | top << mantissa | 1 << (mantissa - 1));
  if (std::isinf(value)) return static_cast<uint16_t>(sign | top << mantissa);
  const int exponent = magnitude == 0 ? 1 - bias : std::max(std::ilogb(magnitude), 1 - bias);
  // The leading one of a normal number adds one to the exponent's field.
  const int units = static_cast<int>(std::ldexp(magnitude, mantissa - exponent));
  return static_cast<uint16_t>(sign | (((exponent + bias - 1) << mantissa) + units));
}

double FromBits(uint16_t bits, DType dtype) {
  const int mantissa = dtype == DType::kBF16 ? 7 : 10, bias = dtype == DType::kBF16 ? 127 : 15;
  const int exponent = (bits & 0x7FFF) >> mantissa, fraction = bits & ((1 << mantissa) - 1);
  double value =
      std::ldexp(fraction + (exponent == 0 ? 0 : 1 << mantissa), std::max(exponent, 1) - bias - mantissa);
  if (exponent == 2 * bias + 1) value = fraction == 0 ? INFINITY : NAN;
  return bits & 0x8000 ? -value : value;
}

bool IsHalf(DType dtype) { return dtype == DType::kBF16 || dtype == DType::kF16; }

void Write(const Array& array, void* data) {
  for (int64_t i = 0; i < array.size(); ++i) {
    if (IsHalf(array.dtype)) static_cast<uint16_t*>(data)[i] = ToBits(array.values[i], array.dtype);
    if (array.dtype == DType::kI32) static_cast<int32_t*>(data)[i] = static_cast<int32_t>(array.values[i]);
    if (array.dtype == DType::kI64) static_cast<int64_t*>(data)[i] = static_cast<int64_t>(array.values[i]);
    if (array.dtype == DType::kF32) static_cast<float*>(data)[i] = static_cast<float>(array.values[i]);
  }
}

void Read(const void* data, Array& array) {
  for (int64_t i = 0; i < array.size(); ++i) {
    if (IsHalf(array.dtype)) array.values[i] = FromBits(static_cast<const uint16_t*>(data)[i], array.dtype);
    if (array.dtype == DType::kI32) array.values[i] = static_cast<const int32_t*>(data)[i];
    if (array.dtype == DType::kI64)
      array.values[i] = static_cast<double>(static_cast<const int64_t*>(data)[i]);
    if (array.dtype == DType::kF32) array.values[i] = static_cast<const float*>(data)[i];
  }
}

Tensor Describe(const Array& array, void* data) {
  Tensor tensor;
  tensor.data = data;
  tensor.dtype = array.dtype;
  tensor.rank = static_cast<int>(array.dims.size());
  for (size_t i = 0; i < array.dims.size(); ++i) tensor.dims[i] = array.dims[i];
  return tensor;
}

// The most that one rounding of a number of at most this magnitude to a 16-bit type changes: half a unit of
// its last place (case.h).
double Rounding(DType dtype, double magnitude) {
  if (!IsHalf(dtype)) return 0;
  const int precision = dtype == DType::kBF16 ? 8 : 11, smallest = dtype == DType::kBF16 ? -126 : -14;
  const int exponent = magnitude == 0 ? smallest : std::max(std::ilogb(magnitude), smallest);
  return std::ldexp(1.0, exponent - precision);
}

// The operand that result `i` shares its buffer with, or -1.
int SharedOperand(const Case& c, size_t i, const RunOptions& options) {
  if (i < c.rules.tied.size() && c.rules.tied[i] >= 0 && c.in[c.rules.tied[i]].present)
    return c.rules.tied[i];
  if (options.share_reusable) {
    for (const auto& [result, operand] : c.rules.reusable) {
      if (result == static_cast<int>(i)) return operand;
    }
  }
  return -1;
}

}  // namespace

absl::StatusOr<Arrays> RunCase(const KernelRegistry& registry, const Case& c, const RunOptions& options) {
  const KernelFactory factory = registry.Find(c.op);
  if (factory == nullptr) return absl::InvalidArgumentError(fmt::format("no kernel '{}'", c.op));
  std::vector<Buffer> inputs, outputs;
  KernelOperands operands;
  for (const Array& array : c.in) {
    Buffer& buffer = inputs.emplace_back(array.size() * SizeOf(array.dtype));
    Write(array, buffer.data());
  }
  for (size_t i = 0; i < c.in.size(); ++i) {
    operands.in.push_back(c.in[i].present ? Describe(c.in[i], inputs[i].data()) : Tensor{});
  }
  for (const Array& array : c.expected) outputs.emplace_back(array.size() * SizeOf(array.dtype));
  for (size_t i = 0; i < c.expected.size(); ++i) {
    const int shared = SharedOperand(c, i, options);
    operands.out.push_back(Describe(c.expected[i], shared < 0 ? outputs[i].data() : inputs[shared].data()));
  }
  Buffer workspace(c.rules.workspace_bytes);
  if (c.rules.workspace_bytes > 0) {
    operands.workspace.data = workspace.data();
    operands.workspace.dtype = DType::kU8;
    operands.workspace.rank = 1;
    operands.workspace.dims[0] = c.rules.workspace_bytes;
  }
  FT_ASSIGN_OR_RETURN(std::unique_ptr<Kernel> kernel, factory(operands, c.attributes, {options.num_threads}));
  kernel->Run();
  Arrays results = c.expected;
  for (size_t i = 0; i < results.size(); ++i) Read(operands.out[i].data, results[i]);
  for (std::vector<Buffer>* buffers : {&inputs, &outputs}) {
    for (Buffer& buffer : *buffers) {
      if (!buffer.GuardIntact()) return absl::InternalError("wrote behind the end of a buffer");
    }
  }
  if (!workspace.GuardIntact()) return absl::InternalError("wrote behind the end of the workspace");
  return results;
}

std::string Compare(const Case& c, const Arrays& got) {
  for (size_t i = 0; i < got.size(); ++i) {
    double scale = c.rules.magnitude;
    for (double value : c.expected[i].values) scale = std::max(scale, std::abs(value));
    const DType dtype = c.expected[i].dtype;
    const double in_f32 =
        dtype == DType::kF32 || IsHalf(dtype) ? 8 * 0x1p-24 * (4 + std::sqrt(c.rules.reduction)) * scale : 0;
    for (int64_t j = 0; j < got[i].size(); ++j) {
      const double want = c.expected[i].values[j], is = got[i].values[j];
      const double tolerance = in_f32 + Rounding(dtype, std::abs(want) + in_f32);
      if (!(std::abs(is - want) <= tolerance)) {
        return fmt::format("result {} element {}: {:.9g}, expected {:.9g}, tolerance {:.2g}", i, j, is, want,
                           tolerance);
      }
    }
  }
  return "";
}

}  // namespace ft::conformance
