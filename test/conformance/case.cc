#include "test/conformance/case.h"

#include <algorithm>
#include <cmath>
#include <map>

namespace ft::conformance {

KernelAttributes Attributes(std::vector<std::pair<std::string, KernelAttributes::Value>> entries) {
  KernelAttributes attributes;
  for (auto& [name, value] : entries) attributes.Add(name, std::move(value));
  return attributes;
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
  for (const CaseList& list : CaseLists()) {
    for (Case& c : list.make()) all.push_back(std::move(c));
  }
  return all;
}

}  // namespace

const std::vector<CaseList>& CaseLists() {
  static const auto* const lists = new std::vector<CaseList>{
      {{"rotary_table"}, &RotaryTableCases},
      {{"fill", "iota", "cast", "copy", "broadcast", "split", "concat", "embedding", "embedding_grad"},
       &MovementCases},
      {{"cluster"}, &ClusterCases},
      {{"reshape", "transpose", "slice", "pad", "dot"}, &ShapeCases},
      {{"gather_elements", "scatter_add_elements", "cumsum", "argsort", "histogram", "grouped_dot",
        "grouped_dot_grad"},
       &IndexCases},
      {{"matmul"}, &MatmulCases},
      {{"matmul_gelu", "matmul_gelu_grad"}, &FusedGeluCases},
      {{"matmul_bias_grad"}, &ExactBiasGradCases},
      {{"attention", "attention_grad", "qkv_attention", "qkv_attention_grad"}, &AttentionCases},
      {{"linear_cross_entropy", "linear_cross_entropy_grad", "linear_cross_entropy_loss_grad"}, &LossCases},
      {{"binary_mapper", "binary_mapper_grad"}, &LatentCases},
      {{"loss_scale", "loss_count", "count_targets", "counted_mean"}, &StepCases},
  };
  return *lists;
}

std::vector<std::string> Ops() {
  std::vector<std::string> ops;
  for (const CaseList& list : CaseLists()) ops.insert(ops.end(), list.ops.begin(), list.ops.end());
  return ops;
}

std::vector<const Case*> CasesOf(std::string_view op) {
  static std::map<const CaseList*, std::vector<Case>> made;
  std::vector<const Case*> found;
  for (const CaseList& list : CaseLists()) {
    if (std::find(list.ops.begin(), list.ops.end(), op) == list.ops.end()) continue;
    auto [cases, first] = made.try_emplace(&list);
    if (first) cases->second = list.make();
    for (const Case& c : cases->second) {
      if (c.op == op) found.push_back(&c);
    }
  }
  return found;
}

const std::vector<Case>& AllCases() {
  static const std::vector<Case> all = MakeAllCases();
  return all;
}

}  // namespace ft::conformance
