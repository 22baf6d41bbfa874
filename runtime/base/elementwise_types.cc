#include "runtime/base/elementwise_types.h"

#include <cmath>
#include <limits>
#include <string>

#include "fmt/format.h"

namespace ft {
namespace {

using Domain = ElementwiseDomain;

bool IsTruth(DType dtype) { return dtype == DType::kU8; }

bool IsLegal(Domain domain, DType dtype) {
  switch (domain) {
    case Domain::kFloat:
      return IsFloat(dtype);
    case Domain::kInteger:
      return IsInteger(dtype);
    case Domain::kNumber:
    case Domain::kCompare:
      return IsFloat(dtype) || IsInteger(dtype);
    case Domain::kLogic:
      return IsTruth(dtype);
    case Domain::kSelect:
      return IsElementwiseType(dtype);
  }
  return false;
}

// Floats may differ, since each is read in its own type.
bool SameKind(DType a, DType b) { return a == b || (IsFloat(a) && IsFloat(b)); }

absl::Status Refuse(std::string_view name, DType dtype) {
  return absl::InvalidArgumentError(
      fmt::format("{} has elements of type {}, which the kernel does not take", name, Name(dtype)));
}

}  // namespace

bool IsElementwiseType(DType dtype) { return IsFloat(dtype) || IsInteger(dtype) || IsTruth(dtype); }

absl::Status CheckElementwiseTypes(const ElementwiseRow& row, absl::Span<const DType> operands,
                                   DType result) {
  const size_t first = row.domain == Domain::kSelect ? 1 : 0;
  if (first == 1 && !IsTruth(operands[0])) return Refuse("a", operands[0]);
  for (size_t i = first; i < operands.size(); ++i) {
    if (!IsLegal(row.domain, operands[i]) || !SameKind(operands[i], operands[first]))
      return Refuse(std::string(1, static_cast<char>('a' + i)), operands[i]);
  }
  const bool right = row.domain == Domain::kCompare ? IsTruth(result) : SameKind(result, operands[first]);
  return right ? absl::OkStatus() : Refuse("the result", result);
}

absl::StatusOr<double> CheckElementwiseParameter(const ElementwiseRow& row, int index, double number,
                                                 DType dtype) {
  const std::string_view name = row.parameters[index];
  const bool of_floats = IsFloat(dtype);
  const double most = of_floats              ? std::numeric_limits<float>::max()
                      : dtype == DType::kI32 ? 0x1p31 - 1
                                             : 0x1p53;
  const double least = row.domain == Domain::kInteger ? 1 : -most;
  if (!(number >= least && number <= most)) {
    if (of_floats)
      return absl::InvalidArgumentError(fmt::format("attribute '{}' must be finite, got {}", name, number));
    return absl::InvalidArgumentError(
        fmt::format("attribute '{}' must be {} to {}, got {}", name, least, most, number));
  }
  if (of_floats) return static_cast<float>(number);
  if (number != std::floor(number))
    return absl::InvalidArgumentError(fmt::format("attribute '{}' must be an integer, got {}", name, number));
  return number;
}

}  // namespace ft
