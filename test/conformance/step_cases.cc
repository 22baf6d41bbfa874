// What a training step adds to the model: loss scaling, what the executor is told.
#include "test/conformance/case.h"

namespace ft::conformance {
namespace {

void AddScalars(std::vector<Case>& cases) {
  for (double scale : {1.0, 65536.0, 0x1p-20}) {
    Array scaler = {{3}, {scale, 12, 1}};
    cases.push_back({"loss_scale",
                     std::to_string(scale),
                     {scaler},
                     Attributes({{"factor", 0.125}}),
                     {Scalar(scale * 0.125)}});
  }
  for (int64_t ignored : {0, 3, 70}) {
    Array targets = RandomIds({2, 35}, 50, 83);
    for (int64_t i = 0; i < ignored; ++i) targets.values[i] = i % 2 == 0 ? -1 : -100;
    const double n = double(targets.size() - ignored);
    cases.push_back({"loss_count",
                     std::to_string(ignored) + " without a target",
                     {Scalar(1.75), targets},
                     {},
                     {{{2}, {1.75 * n, n}}}});
    const auto all = double(targets.size());
    const Array count = {{2}, {n, all}, DType::kI64};
    cases.push_back({"count_targets",
                     std::to_string(ignored) + " without a target",
                     {targets},
                     Attributes({{"of", targets.size()}}),
                     {count, Scalar(n / all)}});
    cases.push_back({"count_targets",
                     std::to_string(ignored) + " without a target, one that never has",
                     {targets},
                     Attributes({{"of", targets.size() - 1}}),
                     {{{2}, {n, all - 1}, DType::kI64}, Scalar(n / (all - 1))}});
    // Where nothing counts both are NaN: ft_exact_test.
    if (n > 0)
      cases.push_back({"counted_mean",
                       std::to_string(ignored) + " without a target",
                       {count, Scalar(1.75)},
                       {},
                       {Scalar(1.75 * all / n), Scalar(all / n)}});
  }
}

}  // namespace

std::vector<Case> StepCases() {
  std::vector<Case> cases;
  AddScalars(cases);
  return cases;
}

}  // namespace ft::conformance
