#include "test/conformance/harness.h"

#include <bit>
#include <cmath>

#include "fmt/format.h"
#include "runtime/base/status_macros.h"

namespace ft::conformance {
namespace {

// A buffer of the bench that knows whether something was written behind its end.
class Buffer {
 public:
  static absl::StatusOr<Buffer> Make(Bench& bench, uint64_t bytes, size_t alignment = 64) {
    Buffer buffer(bench, bytes);
    FT_ASSIGN_OR_RETURN(buffer.memory_, bench.Allocate(bytes + bench.guard_bytes(), alignment));
    return buffer;
  }

  // With garbage, its guard too.
  absl::Status Fill() const {
    const uint64_t all = bytes_ + bench_->guard_bytes();
    return all == 0 ? absl::OkStatus() : bench_->Fill(data(), kGarbage, all);
  }

  void* data() const { return memory_->data(); }

  absl::Status CheckGuard(std::string_view name) const {
    if (bench_->guard_bytes() == 0) return absl::OkStatus();
    std::vector<std::byte> guard(bench_->guard_bytes());
    FT_RETURN_IF_ERROR(bench_->Read(guard.data(), static_cast<std::byte*>(data()) + bytes_, guard.size()));
    for (std::byte byte : guard) {
      if (byte != kGarbage) return absl::InternalError(fmt::format("wrote behind the end of {}", name));
    }
    return absl::OkStatus();
  }

 private:
  static constexpr std::byte kGarbage{0xCD};

  Buffer(Bench& bench, uint64_t bytes) : bench_(&bench), bytes_(bytes) {}

  Bench* bench_;
  uint64_t bytes_;
  std::unique_ptr<Memory> memory_;
};

// A number of a 16-bit type as its bits: sign, exponent, mantissa.
uint16_t ToBits(double value, DType dtype) {
  const int mantissa = dtype == DType::kBF16 ? 7 : 10, bias = dtype == DType::kBF16 ? 127 : 15;
  const int top = 2 * bias + 1, sign = std::signbit(value) ? 0x8000 : 0;
  const double magnitude = std::abs(value);
  if (std::isnan(value)) return static_cast<uint16_t>(sign | top << mantissa | 1 << (mantissa - 1));
  if (std::isinf(value)) return static_cast<uint16_t>(sign | top << mantissa);
  const int exponent = magnitude == 0 ? 1 - bias : std::max(ExponentOf(magnitude), 1 - bias);
  // The leading one of a normal number adds one to the exponent's field.
  const int units = static_cast<int>(magnitude * PowerOfTwo(mantissa - exponent));
  return static_cast<uint16_t>(sign | (((exponent + bias - 1) << mantissa) + units));
}

double FromBits(uint16_t bits, DType dtype) {
  const int mantissa = dtype == DType::kBF16 ? 7 : 10, bias = dtype == DType::kBF16 ? 127 : 15;
  const int exponent = (bits & 0x7FFF) >> mantissa, fraction = bits & ((1 << mantissa) - 1);
  double value =
      (fraction + (exponent == 0 ? 0 : 1 << mantissa)) * PowerOfTwo(std::max(exponent, 1) - bias - mantissa);
  if (exponent == 2 * bias + 1) value = fraction == 0 ? INFINITY : NAN;
  return bits & 0x8000 ? -value : value;
}

bool IsHalf(DType dtype) { return dtype == DType::kBF16 || dtype == DType::kF16; }

// `as(value)` for each value of the array, as a tensor's elements.
template <typename T, typename Function>
void EncodeAs(const Array& array, void* data, Function as) {
  for (int64_t i = 0; i < array.size(); ++i) static_cast<T*>(data)[i] = as(array.values[i]);
}

// And back.
template <typename T, typename Function>
void DecodeAs(const void* data, Array& array, Function as) {
  for (int64_t i = 0; i < array.size(); ++i) array.values[i] = as(static_cast<const T*>(data)[i]);
}

// As the tensor's bytes.
std::vector<std::byte> Encode(const Array& array) {
  std::vector<std::byte> bytes(array.size() * SizeOf(array.dtype));
  void* const data = bytes.data();
  const DType dtype = array.dtype;
  if (IsHalf(dtype)) EncodeAs<uint16_t>(array, data, [=](double value) { return ToBits(value, dtype); });
  if (dtype == DType::kI32)
    EncodeAs<int32_t>(array, data, [](double value) { return static_cast<int32_t>(value); });
  if (dtype == DType::kU8)
    EncodeAs<uint8_t>(array, data, [](double value) { return static_cast<uint8_t>(value); });
  if (dtype == DType::kI64)
    EncodeAs<int64_t>(array, data, [](double value) { return static_cast<int64_t>(value); });
  if (dtype == DType::kF32)
    EncodeAs<float>(array, data, [](double value) { return static_cast<float>(value); });
  return bytes;
}

void Decode(const void* data, Array& array) {
  const DType dtype = array.dtype;
  const auto same = [](auto value) { return static_cast<double>(value); };
  if (IsHalf(dtype)) DecodeAs<uint16_t>(data, array, [=](uint16_t bits) { return FromBits(bits, dtype); });
  if (dtype == DType::kI32) DecodeAs<int32_t>(data, array, same);
  if (dtype == DType::kU8) DecodeAs<uint8_t>(data, array, same);
  if (dtype == DType::kI64) DecodeAs<int64_t>(data, array, same);
  if (dtype == DType::kF32) DecodeAs<float>(data, array, same);
}

Tensor Describe(const Array& array, void* data) {
  Tensor tensor;
  tensor.data = data;
  tensor.dtype = array.dtype;
  tensor.rank = static_cast<int>(array.dims.size());
  for (size_t i = 0; i < array.dims.size(); ++i) tensor.dims[i] = array.dims[i];
  return tensor;
}

// The operand that result `i` shares its buffer with, or -1.
int SharedOperand(const Case& c, size_t i, bool share_reusable) {
  if (i < c.rules.tied.size() && c.rules.tied[i] >= 0 && c.in[c.rules.tied[i]].present)
    return c.rules.tied[i];
  if (share_reusable) {
    for (const auto& [result, operand] : c.rules.reusable) {
      if (result == static_cast<int>(i)) return operand;
    }
  }
  return -1;
}

// A case's operands on a bench.
struct Setup {
  std::vector<Buffer> inputs, outputs, workspace;
  KernelOperands operands;
};

absl::Status Place(Bench& bench, const Case& c, bool share_reusable, Setup& setup) {
  for (const Array& array : c.in) {
    FT_ASSIGN_OR_RETURN(Buffer buffer, Buffer::Make(bench, array.size() * SizeOf(array.dtype)));
    setup.operands.in.push_back(array.present ? Describe(array, buffer.data()) : Tensor{});
    setup.inputs.push_back(std::move(buffer));
  }
  for (size_t i = 0; i < c.expected.size(); ++i) {
    const Array& array = c.expected[i];
    const int shared = SharedOperand(c, i, share_reusable);
    if (shared >= 0) {
      setup.operands.out.push_back(Describe(array, setup.inputs[shared].data()));
      continue;
    }
    FT_ASSIGN_OR_RETURN(Buffer buffer, Buffer::Make(bench, array.size() * SizeOf(array.dtype)));
    setup.operands.out.push_back(Describe(array, buffer.data()));
    setup.outputs.push_back(std::move(buffer));
  }
  const int64_t bytes = WorkspaceBytes(c, bench.device_class());
  if (bytes <= 0) return absl::OkStatus();
  FT_ASSIGN_OR_RETURN(Buffer buffer, Buffer::Make(bench, static_cast<uint64_t>(bytes), 256));
  setup.operands.workspace = {.data = buffer.data(), .dtype = DType::kU8, .rank = 1, .dims = {bytes}};
  setup.workspace.push_back(std::move(buffer));
  return absl::OkStatus();
}

absl::Status FillAll(Bench& bench, const Case& c, const Setup& setup) {
  for (const auto* buffers : {&setup.inputs, &setup.outputs, &setup.workspace}) {
    for (const Buffer& buffer : *buffers) FT_RETURN_IF_ERROR(buffer.Fill());
  }
  for (size_t i = 0; i < c.in.size(); ++i) {
    const std::vector<std::byte> bytes = Encode(c.in[i]);
    if (!bytes.empty()) FT_RETURN_IF_ERROR(bench.Write(setup.inputs[i].data(), bytes.data(), bytes.size()));
  }
  return absl::OkStatus();
}

absl::StatusOr<Arrays> ReadResults(Bench& bench, const Case& c, const Setup& setup) {
  Arrays results = c.expected;
  for (size_t i = 0; i < results.size(); ++i) {
    std::vector<std::byte> bytes(results[i].size() * SizeOf(results[i].dtype));
    FT_RETURN_IF_ERROR(bench.Read(bytes.data(), setup.operands.out[i].data, bytes.size()));
    Decode(bytes.data(), results[i]);
  }
  for (const Buffer& buffer : setup.inputs) FT_RETURN_IF_ERROR(buffer.CheckGuard("an operand"));
  for (const Buffer& buffer : setup.outputs) FT_RETURN_IF_ERROR(buffer.CheckGuard("a result"));
  for (const Buffer& buffer : setup.workspace) FT_RETURN_IF_ERROR(buffer.CheckGuard("the workspace"));
  return results;
}

}  // namespace

int64_t WorkspaceBytes(const Case& c, DeviceClass device_class) {
  return device_class == DeviceClass::kCpu ? c.rules.workspace_bytes : c.rules.cuda_workspace_bytes;
}

absl::StatusOr<Arrays> RunCase(Bench& bench, const Case& c, bool share_reusable) {
  Setup setup;
  FT_RETURN_IF_ERROR(Place(bench, c, share_reusable, setup));
  FT_ASSIGN_OR_RETURN(std::unique_ptr<Kernel> kernel, bench.Create(c.op, setup.operands, c.attributes));
  // Only now: who creates a kernel may try algorithms on its operands.
  FT_RETURN_IF_ERROR(FillAll(bench, c, setup));
  FT_RETURN_IF_ERROR(bench.Run(*kernel));
  return ReadResults(bench, c, setup);
}

std::string Compare(const Case& c, const Arrays& got, DeviceClass device_class, bool bf16_products) {
  const Arrays none, &rounding = device_class == DeviceClass::kCuda ? c.rules.cuda_rounding
                                 : bf16_products                    ? c.rules.bf16_rounding
                                                                    : none;
  for (size_t i = 0; i < got.size(); ++i) {
    double scale = c.rules.magnitude;
    for (double value : c.expected[i].values) scale = std::max(scale, std::abs(value));
    const DType dtype = c.expected[i].dtype;
    const double in_f32 =
        dtype == DType::kF32 || IsHalf(dtype) ? 8 * 0x1p-24 * (4 + std::sqrt(c.rules.reduction)) * scale : 0;
    for (int64_t j = 0; j < got[i].size(); ++j) {
      const double want = c.expected[i].values[j], is = got[i].values[j];
      const double error = in_f32 + (rounding.empty() ? 0 : rounding[i].values[j]);
      if (std::abs(is - want) <= error) continue;
      const double tolerance = error + Rounding(dtype, std::abs(want) + error);
      if (!(std::abs(is - want) <= tolerance)) {
        return fmt::format("result {} element {}: {:.9g}, expected {:.9g}, tolerance {:.2g}", i, j, is, want,
                           tolerance);
      }
    }
  }
  return "";
}

std::string DifferentBits(const Arrays& a, const Arrays& b) {
  for (size_t i = 0; i < a.size(); ++i) {
    for (int64_t j = 0; j < a[i].size(); ++j) {
      const double x = a[i].values[j], y = b[i].values[j];
      if (std::bit_cast<uint64_t>(x) != std::bit_cast<uint64_t>(y) && !(std::isnan(x) && std::isnan(y)))
        return fmt::format("result {} element {}: {:.9g} and {:.9g}", i, j, x, y);
    }
  }
  return "";
}

}  // namespace ft::conformance
