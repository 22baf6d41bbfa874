#include "runtime/device/check.h"

#include <cmath>
#include <string>

#include "fmt/format.h"
#include "runtime/base/checked.h"
#include "runtime/base/philox.h"
#include "runtime/base/status_macros.h"

namespace ft {
namespace {

std::string Describe(const Tensor& tensor) {
  if (!tensor.present()) return "absent";
  std::string text = std::string(Name(tensor.dtype));
  for (int i = 0; i < tensor.rank; ++i) text += fmt::format("{}{}", i == 0 ? " " : "x", tensor.dims[i]);
  return text;
}

}  // namespace

absl::Status CheckCounts(const KernelOperands& operands, size_t in, size_t out) {
  if (operands.in.size() == in && operands.out.size() == out) return absl::OkStatus();
  return absl::InvalidArgumentError(fmt::format("takes {} operands and {} results, got {} and {}", in, out,
                                                operands.in.size(), operands.out.size()));
}

absl::Status CheckPresent(const Tensor& tensor, std::string_view name, DType dtype) {
  if (tensor.present() && tensor.dtype == dtype) return absl::OkStatus();
  return absl::InvalidArgumentError(
      fmt::format("{} must be {}, got {}", name, Name(dtype), Describe(tensor)));
}

absl::Status CheckSize(const Tensor& tensor, std::string_view name, int64_t elements, DType dtype) {
  FT_RETURN_IF_ERROR(CheckPresent(tensor, name, dtype));
  if (tensor.elements() == elements) return absl::OkStatus();
  return absl::InvalidArgumentError(
      fmt::format("{} must have {} elements, got {}", name, elements, Describe(tensor)));
}

absl::Status CheckFloat(const Tensor& tensor, std::string_view name) {
  const DType dtype = tensor.dtype;
  if (tensor.present() && (dtype == DType::kF32 || dtype == DType::kBF16 || dtype == DType::kF16)) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(
      fmt::format("{} must be f32, bf16 or f16, got {}", name, Describe(tensor)));
}

absl::Status CheckFloatSize(const Tensor& tensor, std::string_view name, int64_t elements) {
  FT_RETURN_IF_ERROR(CheckFloat(tensor, name));
  return CheckSize(tensor, name, elements, tensor.dtype);
}

absl::Status CheckSameShape(const Tensor& tensor, std::string_view name, const Tensor& like) {
  FT_RETURN_IF_ERROR(CheckPresent(tensor, name, like.dtype));
  bool same = tensor.rank == like.rank;
  for (int i = 0; same && i < like.rank; ++i) same = tensor.dims[i] == like.dims[i];
  if (same) return absl::OkStatus();
  return absl::InvalidArgumentError(
      fmt::format("{} must be {}, got {}", name, Describe(like), Describe(tensor)));
}

absl::Status CheckAccumulator(const Tensor& accumulator, const Tensor& result) {
  if (!accumulator.present() || accumulator.data == result.data) return absl::OkStatus();
  return absl::InvalidArgumentError("acc must share the buffer of the result it is added to");
}

absl::Status CheckNotEmpty(const Tensor& tensor, std::string_view name, DType dtype) {
  FT_RETURN_IF_ERROR(CheckPresent(tensor, name, dtype));
  if (tensor.elements() > 0) return absl::OkStatus();
  return absl::InvalidArgumentError(fmt::format("{} has no elements", name));
}

absl::Status CheckWorkspace(const KernelOperands& operands, int64_t bytes) {
  if (bytes == 0) return absl::OkStatus();
  const Tensor& workspace = operands.workspace;
  const int64_t given = workspace.present()
                            ? CheckedMul(workspace.elements(), static_cast<int64_t>(SizeOf(workspace.dtype)))
                            : 0;
  if (given < bytes)
    return absl::InvalidArgumentError(fmt::format("needs {} bytes of workspace, got {}", bytes, given));
  if (reinterpret_cast<uintptr_t>(workspace.data) % kWorkspaceAlignment == 0) return absl::OkStatus();
  return absl::InvalidArgumentError(
      fmt::format("the workspace does not begin at a multiple of {} bytes", kWorkspaceAlignment));
}

absl::StatusOr<bool> Flag(const KernelAttributes& attributes, std::string_view name) {
  if (!attributes.Has(name)) return false;
  FT_ASSIGN_OR_RETURN(const int64_t value, IntIn(attributes, name, 0, 1));
  return value == 1;
}

absl::StatusOr<int64_t> IntIn(const KernelAttributes& attributes, std::string_view name, int64_t low,
                              int64_t high) {
  FT_ASSIGN_OR_RETURN(const int64_t value, attributes.Int(name));
  if (value >= low && value <= high) return value;
  return absl::InvalidArgumentError(
      fmt::format("attribute '{}' must be {} to {}, got {}", name, low, high, value));
}

absl::StatusOr<double> FloatIn(const KernelAttributes& attributes, std::string_view name, double low,
                               double high) {
  FT_ASSIGN_OR_RETURN(const double value, attributes.Float(name));
  if (value >= low && value <= high) return value;
  if (low == -kMaxReal && high == kMaxReal)
    return absl::InvalidArgumentError(fmt::format("attribute '{}' must be finite, got {}", name, value));
  return absl::InvalidArgumentError(
      fmt::format("attribute '{}' must be {} to {}, got {}", name, low, high, value));
}

absl::StatusOr<uint32_t> RandomStream(const KernelAttributes& attributes) {
  FT_ASSIGN_OR_RETURN(const int64_t stream, IntIn(attributes, "stream", 0, kFirstOpStream - 1));
  return static_cast<uint32_t>(stream);
}

absl::StatusOr<DropoutRule> ReadDropout(const KernelAttributes& attributes, const Tensor& rng) {
  // The largest probability below 1: the next number, 1, would divide by 0.
  constexpr double kMaxRate = 1.0 - 0x1p-53;
  FT_RETURN_IF_ERROR(CheckSize(rng, "rng", 3, DType::kI64));
  FT_ASSIGN_OR_RETURN(const double rate, FloatIn(attributes, "rate", 0.0, kMaxRate));
  FT_ASSIGN_OR_RETURN(const uint32_t stream, RandomStream(attributes));
  return DropoutRule{rng.as<int64_t>(), kFirstOpStream + stream,
                     // u = k 2^-24 >= rate exactly when k >= ceil(rate 2^24).
                     static_cast<uint32_t>(std::ceil(rate * 0x1p24)), static_cast<float>(1.0 / (1.0 - rate))};
}

absl::StatusOr<double> FillValue(const KernelAttributes& attributes, DType dtype) {
  // Every integer up to 2^53 is a double.
  constexpr double kMaxWhole = 0x1p53;
  switch (dtype) {
    case DType::kF32:
    case DType::kBF16:
    case DType::kF16:
    case DType::kF64:
      return FloatIn(attributes, "value");
    default:
      break;
  }
  const double low = dtype == DType::kU8    ? 0.0
                     : dtype == DType::kI32 ? std::numeric_limits<int32_t>::min()
                                            : -kMaxWhole;
  const double high = dtype == DType::kU8    ? 255.0
                      : dtype == DType::kI32 ? std::numeric_limits<int32_t>::max()
                                             : kMaxWhole;
  FT_ASSIGN_OR_RETURN(const double value, FloatIn(attributes, "value", low, high));
  if (value == std::trunc(value)) return value;
  return absl::InvalidArgumentError(fmt::format("{} cannot hold the value {}", Name(dtype), value));
}

absl::Status CheckFlat(const Tensor& tensor, std::string_view name) {
  if (tensor.present() && tensor.rank == 1 && !tensor.parameters.empty()) return absl::OkStatus();
  return absl::InvalidArgumentError(fmt::format("{} is no flat buffer of a unit", name));
}

}  // namespace ft
