#include <cmath>

#include "test/conformance/case.h"

namespace ft::conformance {

namespace {

// Of three frequencies of one's own, in both directions, scaled.
Case Scaled() {
  const std::vector<double> frequencies = {1.0, -0.25, 1e-6};
  constexpr double kScale = 1.1902380714238083;
  Array cosine = Constant({5, 3}, 0), sine = cosine;
  for (int64_t at = 0; at < 15; ++at) {
    const double angle = static_cast<double>(at / 3) * frequencies[at % 3];
    cosine.values[at] = kScale * std::cos(angle);
    sine.values[at] = kScale * std::sin(angle);
  }
  return {"rotary_table",
          "of frequencies",
          {},
          Attributes({{"frequencies", frequencies}, {"scale", kScale}}),
          {cosine, sine}};
}

}  // namespace

std::vector<Case> RotaryTableCases() {
  std::vector<Case> cases = {Scaled()};
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
