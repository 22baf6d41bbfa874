// The middle of measured times.
#pragma once

#include <algorithm>
#include <vector>

namespace ftc {

// Of an even number the mean of the two in the middle; 0 of none.
inline double Median(std::vector<double> values) {
  if (values.empty()) return 0;
  std::sort(values.begin(), values.end());
  const size_t half = values.size() / 2;
  return values.size() % 2 == 1 ? values[half] : (values[half - 1] + values[half]) / 2;
}

}  // namespace ftc
