#include "test/conformance/case.h"

#include <cmath>

namespace ft::conformance {

KernelAttributes Attributes(std::vector<std::pair<std::string, KernelAttributes::Value>> entries) {
  KernelAttributes attributes;
  for (auto& [name, value] : entries) attributes.Add(name, std::move(value));
  return attributes;
}

Case ByCudnn(Case c) {
  if (!c.rules.cudnn_rounding.empty()) c.rules.cuda_rounding = c.rules.cudnn_rounding;
  return c;
}

namespace {

double Inner(const Arrays& a, const Arrays& b) {
  double sum = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    for (int64_t j = 0; j < a[i].size(); ++j) sum += a[i].values[j] * b[i].values[j];
  }
  return sum;
}

}  // namespace

Array NumericGradient(const std::function<Arrays(const Arrays&)>& f, const Arrays& in, size_t wrt,
                      const Arrays& upstream) {
  // The error of a central difference is h^2 f''' / 6 + 2^-53 f / h: about 1e-10 here, far below f32's.
  constexpr double kStep = 1e-5;
  Array gradient = in[wrt];
  Arrays moved = in;
  for (int64_t j = 0; j < gradient.size(); ++j) {
    const double value = in[wrt].values[j];
    moved[wrt].values[j] = value + kStep;
    const double above = Inner(upstream, f(moved));
    moved[wrt].values[j] = value - kStep;
    const double below = Inner(upstream, f(moved));
    moved[wrt].values[j] = value;
    gradient.values[j] = (above - below) / (2 * kStep);
  }
  return gradient;
}

namespace {

std::vector<Case> MakeAllCases() {
  std::vector<Case> all;
  for (auto* list : {&ElementwiseCases, &MovementCases, &NormCases, &MatmulCases, &FusedGeluCases,
                     &AttentionCases, &LossCases, &LatentCases, &StepCases}) {
    for (Case& c : list()) all.push_back(std::move(c));
  }
  return all;
}

}  // namespace

const std::vector<Case>& AllCases() {
  static const std::vector<Case> all = MakeAllCases();
  return all;
}

}  // namespace ft::conformance
