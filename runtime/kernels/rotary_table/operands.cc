#include "runtime/kernels/rotary_table/operands.h"

#include <cmath>
#include <limits>
#include <utility>

#include "fmt/format.h"
#include "runtime/base/status_macros.h"
#include "runtime/device/check.h"

namespace ft {
namespace {

// Elements of a table of cosines, 1 GiB: 2 million positions of heads of 256.
constexpr int64_t kMostAngles = int64_t{1} << 28;

absl::StatusOr<std::vector<double>> Frequencies(const KernelAttributes& attributes, int64_t half) {
  if (attributes.Has("frequencies")) {
    FT_ASSIGN_OR_RETURN(std::vector<double> frequencies, attributes.Reals("frequencies"));
    if (static_cast<int64_t>(frequencies.size()) != half)
      return absl::InvalidArgumentError(
          fmt::format("there are {} frequencies for {} columns", frequencies.size(), half));
    for (const double frequency : frequencies) {
      if (!(std::abs(frequency) <= kMaxReal))
        return absl::InvalidArgumentError(fmt::format("frequency {} is not finite", frequency));
    }
    return frequencies;
  }
  FT_ASSIGN_OR_RETURN(const double base, FloatIn(attributes, "base", std::numeric_limits<float>::min()));
  std::vector<double> frequencies(half);
  for (int64_t i = 0; i < half; ++i)
    frequencies[i] = std::pow(base, -static_cast<double>(i) / static_cast<double>(half));
  return frequencies;
}

}  // namespace

absl::StatusOr<RotaryTableOperands> ReadRotaryTable(const KernelOperands& operands,
                                                    const KernelAttributes& attributes) {
  FT_RETURN_IF_ERROR(CheckCounts(operands, 0, 2));
  RotaryTableOperands table;
  table.cosine = operands.out[0];
  table.sine = operands.out[1];
  FT_RETURN_IF_ERROR(CheckNotEmpty(table.cosine, "cosine", DType::kF32));
  FT_RETURN_IF_ERROR(CheckSameShape(table.sine, "sine", table.cosine));
  if (table.cosine.rank != 2)
    return absl::InvalidArgumentError("cosine must be [positions, half of the head size]");
  if (table.half() > kMostAngles / table.positions())
    return absl::InvalidArgumentError(
        fmt::format("{} positions of heads of {} are too many", table.positions(), 2 * table.half()));
  FT_ASSIGN_OR_RETURN(table.frequencies, Frequencies(attributes, table.half()));
  if (attributes.Has("scale")) {
    FT_ASSIGN_OR_RETURN(table.scale, FloatIn(attributes, "scale"));
  }
  return table;
}

}  // namespace ft
