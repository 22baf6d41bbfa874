#include "runtime/kernels/matmul/float8.h"

#include <optional>
#include <string>

#include "fmt/format.h"
#include "runtime/base/status_macros.h"
#include "runtime/device/check.h"

namespace ft {
namespace {

absl::StatusOr<Float8> ReadFormat(const KernelAttributes& attributes, std::string_view name) {
  FT_ASSIGN_OR_RETURN(const std::string text, attributes.String(name));
  if (const std::optional<Float8> type = Float8Named(text)) return *type;
  return absl::InvalidArgumentError(fmt::format("{} is '{}'; expected e4m3 or e5m2", name, text));
}

}  // namespace

// Of what the product reads as rows of k elements.
ScaleBlocks Float8Operands::BlocksOfA(const ProductShape& shape) const {
  if (!blockwise) return shape.transpose_a ? ScaleBlocks{shape.k, shape.m} : ScaleBlocks{shape.m, shape.k};
  return shape.transpose_a ? ScaleBlocks{kFloat8Block, 1} : ScaleBlocks{1, kFloat8Block};
}

// A weight has squares, so that it is rounded alike in both directions.
ScaleBlocks Float8Operands::BlocksOfB(const ProductShape& shape) const {
  if (!blockwise) return shape.transpose_b ? ScaleBlocks{shape.n, shape.k} : ScaleBlocks{shape.k, shape.n};
  return shape.transpose_a ? ScaleBlocks{kFloat8Block, 1} : ScaleBlocks{kFloat8Block, kFloat8Block};
}

bool RoundsToFloat8(const KernelAttributes& attributes) {
  return attributes.Has("scaling") || attributes.Has("a_format") || attributes.Has("b_format");
}

absl::StatusOr<Float8Operands> ReadFloat8(const KernelAttributes& attributes, const Tensor& a) {
  Float8Operands read;
  FT_ASSIGN_OR_RETURN(read.a, ReadFormat(attributes, "a_format"));
  FT_ASSIGN_OR_RETURN(read.b, ReadFormat(attributes, "b_format"));
  FT_ASSIGN_OR_RETURN(const std::string scaling, attributes.String("scaling"));
  if (scaling != "tensorwise" && scaling != "blockwise")
    return absl::InvalidArgumentError(
        fmt::format("scaling is '{}'; expected tensorwise or blockwise", scaling));
  read.blockwise = scaling == "blockwise";
  if (read.a == Float8::kE5M2 && read.b == Float8::kE5M2)
    return absl::InvalidArgumentError("there is no product of two operands in e5m2");
  FT_RETURN_IF_ERROR(CheckPresent(a, "a", DType::kBF16));
  return read;
}

}  // namespace ft
