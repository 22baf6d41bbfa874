// Losses of logits and their gradients in f64, and targets for them.
#pragma once

#include <algorithm>
#include <cmath>
#include <string>

#include "test/conformance/array.h"

namespace ft::conformance {

// Rows whose target is not negative: the others are left out.
inline int64_t Counted(const Array& targets) {
  return std::count_if(targets.values.begin(), targets.values.end(),
                       [](double target) { return target >= 0; });
}

// Of each row; 0 where it is left out.
inline Array RowLosses(const Array& logits, const Array& targets) {
  const int64_t n = logits.last(), rows = logits.rows();
  Array losses = Constant({rows}, 0);
  for (int64_t row = 0; row < rows; ++row) {
    if (targets.values[row] < 0) continue;
    const double* x = logits.values.data() + row * n;
    double maximum = x[0], sum = 0;
    for (int64_t i = 0; i < n; ++i) maximum = std::max(maximum, x[i]);
    for (int64_t i = 0; i < n; ++i) sum += std::exp(x[i] - maximum);
    losses.values[row] = std::log(sum) + maximum - x[static_cast<int64_t>(targets.values[row])];
  }
  return losses;
}

// Which rows are left out.
enum class Ignore { kNone, kSome, kAll };

inline std::string Describe(Ignore ignore) {
  return ignore == Ignore::kNone ? "" : (ignore == Ignore::kSome ? " some left out" : " all left out");
}

inline Array Targets(int64_t rows, int64_t vocabulary, uint64_t seed, Ignore ignore) {
  Array targets = RandomIds({rows}, vocabulary, seed);
  for (int64_t row = 0; row < rows; ++row) {
    const bool out = ignore == Ignore::kAll || (ignore == Ignore::kSome && row % 3 != 1);
    if (out) targets.values[row] = row % 2 == 0 ? -100 : -1;
  }
  return targets;
}

// dloss * (softmax(logits) - onehot) / rows that count.
inline Array LogitGradients(const Array& logits, const Array& targets, double dloss) {
  const int64_t n = logits.last();
  const double scale = dloss / Counted(targets);
  Array result = Constant(logits.dims, 0);
  for (int64_t row = 0; row < logits.rows(); ++row) {
    const double target = targets.values[row], *x = logits.values.data() + row * n;
    double sum = 0, *p = result.values.data() + row * n;
    if (target < 0) continue;
    for (int64_t i = 0; i < n; ++i) sum += p[i] = std::exp(x[i]);
    for (int64_t i = 0; i < n; ++i) p[i] = scale * (p[i] / sum - (i == target ? 1 : 0));
  }
  return result;
}

}  // namespace ft::conformance
