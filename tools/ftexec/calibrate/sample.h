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

}  // namespace ft
