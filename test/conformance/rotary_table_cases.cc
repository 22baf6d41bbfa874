#include <cmath>

#include "test/conformance/case.h"

namespace ft::conformance {

std::vector<Case> RotaryTableCases() {
  std::vector<Case> cases;
  // Angles of many turns; more columns than a GPU computes in one launch.
  for (const auto& [positions, half] :
       {std::pair<int64_t, int64_t>{1, 1}, {5, 3}, {130, 32}, {4, 132}, {131073, 2}}) {
    Array cosine = Constant({positions, half}, 0), sine = cosine;
    for (int64_t t = 0; t < positions; ++t) {
      for (int64_t i = 0; i < half; ++i) {
        const double angle = t * std::pow(10000.0, -double(i) / half);
        cosine.values[t * half + i] = std::cos(angle);
        sine.values[t * half + i] = std::sin(angle);
      }
    }
    cases.push_back({"rotary_table",
                     std::to_string(positions) + " of " + std::to_string(half),
                     {},
                     Attributes({{"base", 10000.0}}),
                     {cosine, sine}});
  }
  return cases;
}

}  // namespace ft::conformance
