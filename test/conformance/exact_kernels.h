// Kernels whose results are exact or in place, hence without a tolerance or an expected result of their own:
// ft_exact_test holds them to single bits, and fails when one of them was not run.
#pragma once

#include <set>
#include <string>

namespace ft {

inline constexpr const char* kExactKernels[] = {"clip_coefficient", "sum_squares", "update",
                                                "update_scalars"};

/// Those that a test of this process has run.
inline std::set<std::string>& KernelsRun() {
  static auto* const kRun = new std::set<std::string>;
  return *kRun;
}

}  // namespace ft
