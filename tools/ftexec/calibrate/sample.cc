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

LinkTime FitLink(const std::vector<TimedBytes>& timed) {
  double ones = 0, bytes = 0, squares = 0, seconds = 0, products = 0;  // sums, each times 1 / seconds^2
  for (const TimedBytes& one : timed) {
    const double weight = 1 / (one.seconds * one.seconds);
    ones += weight;
    bytes += weight * one.bytes;
    squares += weight * one.bytes * one.bytes;
    seconds += weight * one.seconds;
    products += weight * one.bytes * one.seconds;
  }
  const double determinant = ones * squares - bytes * bytes;
  double per_byte =
      determinant > 1e-9 * ones * squares ? (ones * products - bytes * seconds) / determinant : 0;
  double latency = (seconds - per_byte * bytes) / ones;
  if (latency < 0) {
    latency = 0;
    per_byte = products / squares;
  }
  if (per_byte > 0) return {.latency = latency, .bytes_per_s = 1 / per_byte};
  return {.latency = 0, .bytes_per_s = timed.back().bytes / timed.back().seconds};
}

}  // namespace ft
