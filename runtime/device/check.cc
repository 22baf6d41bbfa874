#include "runtime/device/check.h"

#include <string>

#include "fmt/format.h"
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

absl::Status CheckWorkspace(const KernelOperands& operands, int64_t bytes) {
  if (bytes == 0) return absl::OkStatus();
  const Tensor& workspace = operands.workspace;
  const int64_t given =
      workspace.present() ? workspace.elements() * static_cast<int64_t>(SizeOf(workspace.dtype)) : 0;
  if (given >= bytes) return absl::OkStatus();
  return absl::InvalidArgumentError(fmt::format("needs {} bytes of workspace, got {}", bytes, given));
}

absl::StatusOr<bool> Flag(const KernelAttributes& attributes, std::string_view name) {
  if (!attributes.Has(name)) return false;
  FT_ASSIGN_OR_RETURN(const int64_t value, attributes.Int(name));
  return value != 0;
}

}  // namespace ft
