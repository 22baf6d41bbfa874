// What repeats of a measurement come to.
#pragma once

#include <vector>

namespace ft {

struct Sample {
  double seconds = 0;  // median
  double spread = 0;   // half of what the middle half of the repeats covers, as part of the median
};

inline constexpr double kMostSpread = 10;  // as targets have it (VerifyTarget)

// Quartiles are interpolated between neighbours (R. Hyndman and Y. Fan, "Sample Quantiles in Statistical
// Packages", 1996, type 7). {} of none; a spread of 0 of one;
// none above kMostSpread.
Sample Summarize(std::vector<double> seconds);

// The median of parts such as spreads; 0 of none.
double MiddleOf(std::vector<double> values);

// Seconds = latency + bytes / bytes_per_s.
struct LinkTime {
  double latency = 0;
  double bytes_per_s = 0;
};
struct TimedBytes {
  double bytes, seconds;  // both above 0
};

// What fits all of them best: weighted least squares whose errors are parts of each time, so that none
// outweighs the others by its size. A latency that would be negative is 0; where times do not grow with bytes
// the rate is that of the last. `timed` is not empty.
LinkTime FitLink(const std::vector<TimedBytes>& timed);

}  // namespace ft
