// What a training step adds to the model: loss scaling, what the executor is told.
#include <cmath>

#include "test/conformance/case.h"

namespace ft::conformance {
namespace {

std::string Typed(DType dtype, const std::string& label) { return std::string(Name(dtype)) + " " + label; }

constexpr int64_t kSeed = 1234567890123, kMicroStep = 17;

Array Rng(int64_t rank) { return {{3}, {double(kSeed), double(kMicroStep), double(rank)}, DType::kI64}; }

void AddFoundInf(std::vector<Case>& cases, DType dtype) {
  Array none = {{64}, std::vector<double>(64, 0), DType::kI64}, others = none;
  others.values[0] = 8;  // rank 3
  others.values[2] = 1;  // rank 128
  constexpr double kBad[] = {0.0, INFINITY, -INFINITY, NAN};
  constexpr int64_t kRanks[] = {0, 3, 61, 130, 4095};
  for (int64_t count : {1, 7, 70001}) {
    for (size_t i = 0; i < std::size(kBad); ++i) {
      for (size_t j = 0; j < std::size(kRanks); ++j) {
        // Long ones: each number and each rank, not all pairs.
        if (count > 1000 && j != i && j != 4) continue;
        const double bad = kBad[i];
        const int64_t rank = kRanks[j];
        Array x = As(Random({count}, 82), dtype);
        if (bad != 0) x.values[count * 2 / 3] = bad;
        for (const Array& start : {Absent(), others}) {
          Array bitmap = start.present ? start : none;
          // The word's last bit is the sign; rank 3's is set already where there are others.
          const double bit = std::ldexp(rank % 64 == 63 ? -1.0 : 1.0, static_cast<int>(rank % 64));
          if (bad != 0 && bitmap.values[rank / 64] != bit) bitmap.values[rank / 64] += bit;
          cases.push_back({"found_inf",
                           Typed(dtype, std::to_string(count) + " with " + std::to_string(bad)) + " rank " +
                               std::to_string(rank) + (start.present ? " into" : ""),
                           {x, Rng(rank), start},
                           {},
                           {bitmap},
                           {.tied = {2}}});
        }
      }
    }
  }
}

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
  for (DType dtype : kFloats) {
    AddFoundInf(cases, dtype);
  }
  AddScalars(cases);
  return cases;
}

}  // namespace ft::conformance
