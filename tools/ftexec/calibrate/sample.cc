#include "tools/ftexec/calibrate/sample.h"

#include <algorithm>
#include <cmath>
#include <cstddef>

namespace ft {
namespace {

// `sorted` is not empty; `part` in [0, 1].
double QuantileOf(const std::vector<double>& sorted, double part) {
  const double at = part * static_cast<double>(sorted.size() - 1);
  const auto low = static_cast<size_t>(std::floor(at));
  const size_t high = std::min(low + 1, sorted.size() - 1);
  return sorted[low] + (at - static_cast<double>(low)) * (sorted[high] - sorted[low]);
}

}  // namespace

Sample Summarize(std::vector<double> seconds) {
  if (seconds.empty()) return {};
  std::sort(seconds.begin(), seconds.end());
  const double median = QuantileOf(seconds, 0.5);
  if (!(median > 0)) return {};
  const double spread = (QuantileOf(seconds, 0.75) - QuantileOf(seconds, 0.25)) / 2 / median;
  return {.seconds = median, .spread = std::min(kMostSpread, spread)};
}

double MiddleOf(std::vector<double> values) {
  if (values.empty()) return 0;
  std::sort(values.begin(), values.end());
  return QuantileOf(values, 0.5);
}

}  // namespace ft
