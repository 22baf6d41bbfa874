#include <algorithm>
#include <cmath>
#include <numeric>

#include "runtime/base/cuda_workspace.h"
#include "runtime/base/workspace.h"
#include "test/conformance/case.h"
#include "test/conformance/loss_reference.h"

namespace ft::conformance {
namespace {

// in: x, weight, targets.
Arrays LinearCrossEntropy(const Arrays& in) {
  const int64_t width = in[0].last(), vocabulary = in[1].rows(), rows = in[0].rows();
  Array logits = Constant({rows, vocabulary}, 0);
  for (int64_t row = 0; row < rows; ++row) {
    for (int64_t c = 0; c < vocabulary; ++c) {
      for (int64_t i = 0; i < width; ++i)
        logits.values[row * vocabulary + c] += in[0].values[row * width + i] * in[1].values[c * width + i];
    }
  }
  const Array losses = RowLosses(logits, in[2]);
  return {Scalar(std::accumulate(losses.values.begin(), losses.values.end(), 0.0) /
                 std::max<int64_t>(1, Counted(in[2])))};
}

struct Shape {
  int64_t rows, vocabulary, width;
};

// The gradients straight from the formula, for shapes that are too large for finite differences.
Arrays LinearGradients(const Array& x, const Array& weight, const Array& targets, double dloss) {
  Array dx = Constant(x.dims, 0), dweight = Constant(weight.dims, 0);
  const int64_t width = x.last(), vocabulary = weight.rows(), rows = x.rows();
  const double scale = dloss / Counted(targets);
  for (int64_t row = 0; row < rows; ++row) {
    if (targets.values[row] < 0) continue;
    std::vector<double> p(vocabulary, 0);
    double sum = 0;
    for (int64_t c = 0; c < vocabulary; ++c) {
      for (int64_t i = 0; i < width; ++i) p[c] += x.values[row * width + i] * weight.values[c * width + i];
      p[c] = std::exp(p[c]);
      sum += p[c];
    }
    for (int64_t c = 0; c < vocabulary; ++c) {
      const double g = scale * (p[c] / sum - (c == targets.values[row] ? 1 : 0));
      for (int64_t i = 0; i < width; ++i) {
        dx.values[row * width + i] += g * weight.values[c * width + i];
        dweight.values[c * width + i] += g * x.values[row * width + i];
      }
    }
  }
  return {dx, dweight};
}

void AddLinear(std::vector<Case>& cases, const Shape& s, bool with_acc) {
  const Array x = Random({s.rows, s.width}, 63, 1.0), weight = Random({s.vocabulary, s.width}, 64, 1.0);
  const Array targets = RandomIds({s.rows}, s.vocabulary, 65),
              acc = with_acc ? Random(weight.dims, 66, 0.1) : Absent();
  const std::string label = std::to_string(s.rows) + "x" + std::to_string(s.vocabulary) + "x" +
                            std::to_string(s.width) + (with_acc ? " acc" : "");
  const Arrays loss = LinearCrossEntropy({x, weight, targets});
  const double dloss = 0.75, longest = std::max({s.rows, s.vocabulary, s.width});
  Arrays gradients = LinearGradients(x, weight, targets, dloss);
  if (s.rows * s.vocabulary * s.width < 4000) {
    gradients = {NumericGradient(LinearCrossEntropy, {x, weight, targets}, 0, {Scalar(dloss)}),
                 NumericGradient(LinearCrossEntropy, {x, weight, targets}, 1, {Scalar(dloss)})};
  }
  for (int64_t i = 0; with_acc && i < acc.size(); ++i) gradients[1].values[i] += acc.values[i];
  const int64_t workspace = LinearCrossEntropyWorkspace(s.rows, s.vocabulary);
  const DType f32 = DType::kF32;
  const int64_t cuda_workspace =
      cuda_workspace::LinearCrossEntropyGrad(s.rows, s.vocabulary, s.width, f32, f32);
  if (!with_acc) {
    cases.push_back(
        {"linear_cross_entropy",
         label,
         {x, weight, targets},
         {},
         loss,
         {.reduction = longest,
          .magnitude = 5,
          .workspace_bytes = workspace,
          .cuda_workspace_bytes = cuda_workspace::LinearCrossEntropy(s.rows, s.vocabulary, s.width, f32)}});
  }
  cases.push_back({"linear_cross_entropy_grad",
                   label,
                   {Scalar(dloss), x, weight, targets, acc},
                   {},
                   gradients,
                   {.reduction = longest,
                    .magnitude = 1.0 / s.rows,
                    .workspace_bytes = workspace,
                    .tied = {-1, 4},
                    .cuda_workspace_bytes = cuda_workspace}});
  // The tolerance of the loss must not loosen that of the gradients: the loss alone is the case above.
  cases.push_back({"linear_cross_entropy_loss_grad",
                   label,
                   {x, weight, targets, acc, Absent()},
                   Attributes({{"dloss", dloss}}),
                   {loss[0], gradients[0], gradients[1]},
                   {.reduction = longest,
                    .magnitude = 1.0 / s.rows,
                    .workspace_bytes = workspace,
                    .tied = {-1, -1, 3},
                    .cuda_workspace_bytes = cuda_workspace}});
}

// x and weight of one type, dweight and acc of another.
struct Types {
  DType compute, reduce;
};

struct Operands {
  Array x, weight, targets;
};

// What CUDA's kernels may add to the error of {loss, dx, dweight} because they keep logits, and then their
// gradients, in the type of x when that has 16 bits.
//
// With logits off by at most d_j = half a unit of their last place, logsumexp is off by at most L = log sum_j
// p_j exp(d_j) (below, by Cauchy and Schwarz), so the loss of a row by L + d_target, and p_j by p_j (exp(d_j
// + L) - 1). A gradient s (p_j - onehot_j) is off by s times that and by its own rounding; f16 holds 2^15
// (p_j - onehot_j).
Arrays LogitRounding(const Operands& in, double dloss, DType dtype) {
  Array loss = Scalar(0), dx = Constant(in.x.dims, 0), dweight = Constant(in.weight.dims, 0);
  if (dtype == DType::kF32) return {};
  const int64_t width = in.x.last(), vocabulary = in.weight.rows();
  const double counted = std::max<int64_t>(1, Counted(in.targets)), scale = dloss / counted;
  const double held = dtype == DType::kF16 ? 0x1p15 : scale;
  for (int64_t row = 0; row < in.x.rows(); ++row) {
    const double target = in.targets.values[row], *x = in.x.values.data() + row * width;
    if (target < 0) continue;
    std::vector<double> p(vocabulary, 0), off(vocabulary, 0);
    double sum = 0, grown = 0;
    for (int64_t c = 0; c < vocabulary; ++c) {
      for (int64_t i = 0; i < width; ++i) p[c] += x[i] * in.weight.values[c * width + i];
      if (RoundTo(p[c], dtype) != p[c]) off[c] = Rounding(dtype, std::abs(p[c]));
      p[c] = std::exp(p[c]);
      sum += p[c];
      grown += p[c] * std::exp(off[c]);
    }
    const double log_sum = std::log(grown / sum);
    loss.values[0] += (log_sum + off[static_cast<int64_t>(target)]) / counted;
    for (int64_t c = 0; c < vocabulary; ++c) {
      const double moved = p[c] / sum * (std::exp(off[c] + log_sum) - 1);
      const double gradient = std::abs(p[c] / sum - (c == target ? 1 : 0));
      const double g = scale * (moved + Rounding(dtype, held * (gradient + moved)) / held);
      for (int64_t i = 0; i < width; ++i) {
        dx.values[row * width + i] += g * std::abs(in.weight.values[c * width + i]);
        dweight.values[c * width + i] += g * std::abs(x[i]);
      }
    }
  }
  return {loss, dx, dweight};
}

// What products of bf16 add to the error of {loss, dx, dweight}: the gradients of the logits are rounded to
// it, each by at most 2^-8 of itself.
Arrays GradientRounding(const Operands& in, double dloss, DType dtype) {
  if (dtype != DType::kBF16) return {};
  Array dx = Constant(in.x.dims, 0), dweight = Constant(in.weight.dims, 0);
  const int64_t width = in.x.last(), vocabulary = in.weight.rows();
  Array logits = Constant({in.x.rows(), vocabulary}, 0);
  for (int64_t at = 0; at < logits.size(); ++at) {
    const double *x = in.x.values.data() + at / vocabulary * width,
                 *weight = in.weight.values.data() + at % vocabulary * width;
    for (int64_t i = 0; i < width; ++i) logits.values[at] += x[i] * weight[i];
  }
  const Array gradients = LogitGradients(logits, in.targets, dloss);
  for (int64_t at = 0; at < gradients.size(); ++at) {
    const int64_t row = at / vocabulary, c = at % vocabulary;
    const double off = std::abs(gradients.values[at]) * 0x1p-8;
    for (int64_t i = 0; i < width; ++i) {
      dx.values[row * width + i] += off * std::abs(in.weight.values[c * width + i]);
      dweight.values[c * width + i] += off * std::abs(in.x.values[row * width + i]);
    }
  }
  return {Scalar(0), dx, dweight};
}

void AddLinearOf(std::vector<Case>& cases, const Operands& in, const std::string& what, Types types,
                 bool with_acc) {
  const auto& [x, weight, targets] = in;
  const int64_t rows = x.rows(), width = x.last(), vocabulary = weight.rows();
  const Array acc = with_acc ? As(Random(weight.dims, 66, 0.1), types.reduce) : Absent();
  const std::string label = std::to_string(rows) + "x" + std::to_string(vocabulary) + "x" +
                            std::to_string(width) + (with_acc ? " acc " : " ") +
                            std::string(Name(types.compute)) + " to " + std::string(Name(types.reduce)) +
                            what;
  const double dloss = 0.75, longest = std::max({rows, vocabulary, width});
  const Arrays loss = LinearCrossEntropy({x, weight, targets});
  Arrays gradients = LinearGradients(x, weight, targets, dloss);
  for (int64_t i = 0; with_acc && i < acc.size(); ++i) gradients[1].values[i] += acc.values[i];
  gradients[0].dtype = types.compute;
  gradients[1].dtype = types.reduce;
  const Arrays off = LogitRounding(in, dloss, types.compute);
  const bool rounds = !off.empty();
  Rules rules = {
      .reduction = longest,
      .magnitude = 5,
      .workspace_bytes = LinearCrossEntropyWorkspace(rows, vocabulary),
      .cuda_workspace_bytes = cuda_workspace::LinearCrossEntropy(rows, vocabulary, width, types.compute),
      .cuda_rounding = rounds ? Arrays{off[0]} : Arrays{}};
  if (!with_acc) cases.push_back({"linear_cross_entropy", label, {x, weight, targets}, {}, loss, rules});
  rules.magnitude = 1.0 / std::max<int64_t>(1, Counted(targets));
  rules.cuda_workspace_bytes =
      cuda_workspace::LinearCrossEntropyGrad(rows, vocabulary, width, types.compute, types.reduce);
  rules.tied = {-1, 4};
  if (rounds) rules.cuda_rounding = {off[1], off[2]};
  const Arrays bf16 = GradientRounding(in, dloss, types.compute);
  if (!bf16.empty()) rules.bf16_rounding = {bf16[1], bf16[2]};
  cases.push_back(
      {"linear_cross_entropy_grad", label, {Scalar(dloss), x, weight, targets, acc}, {}, gradients, rules});
  rules.tied = {-1, -1, 3};
  rules.cuda_rounding = off;
  rules.bf16_rounding = bf16;
  cases.push_back({"linear_cross_entropy_loss_grad",
                   label,
                   {x, weight, targets, acc, with_acc ? Scalar(dloss / 3) : Absent()},
                   Attributes({{"dloss", with_acc ? 3.0 : dloss}}),
                   {loss[0], gradients[0], gradients[1]},
                   rules});
}

void AddTypedLinear(std::vector<Case>& cases, const Shape& s, Types types, Ignore ignore, bool with_acc) {
  AddLinearOf(cases,
              {As(Random({s.rows, s.width}, 63, 1.0), types.compute),
               As(Random({s.vocabulary, s.width}, 64, 1.0), types.compute),
               Targets(s.rows, s.vocabulary, 65, ignore)},
              Describe(ignore), types, with_acc);
}

// Logits are multiples of 1/2 below 16, which 16 bits hold: nothing but their gradients is rounded there.
void AddExactLogits(std::vector<Case>& cases, const Shape& s, Types types) {
  Array x = As(Random({s.rows, s.width}, 163, 2.0), types.compute),
        weight = As(Random({s.vocabulary, s.width}, 164, 2.0), types.compute);
  for (double& value : x.values) value = std::round(value);
  for (double& value : weight.values) value = std::round(value) / 2;
  AddLinearOf(cases, {x, weight, Targets(s.rows, s.vocabulary, 165, Ignore::kSome)}, " exact logits", types,
              false);
}

void AddTypedCases(std::vector<Case>& cases) {
  constexpr DType kF32 = DType::kF32, kBF16 = DType::kBF16, kF16 = DType::kF16;
  for (const Types& types : {Types{kF32, kF32},
                             {kBF16, kBF16},
                             {kF16, kF16},
                             {kBF16, kF32},
                             {kF16, kF32},
                             {kBF16, kF16},
                             {kF16, kBF16},
                             {kF32, kBF16},
                             {kF32, kF16}}) {
    for (bool with_acc : {false, true}) {
      AddTypedLinear(cases, {1, 2, 1}, types, Ignore::kNone, with_acc);
      AddTypedLinear(cases, {7, 19, 5}, types, Ignore::kAll, with_acc);
      AddTypedLinear(cases, {130, 257, 33}, types, Ignore::kSome, with_acc);
      AddTypedLinear(cases, {69, 133, 300}, types, Ignore::kNone, with_acc);
    }
  }
  for (const Types& types : {Types{kBF16, kBF16}, {kF16, kF16}, {kBF16, kF32}, {kF16, kF32}}) {
    AddExactLogits(cases, {130, 257, 7}, types);
    AddExactLogits(cases, {20, 5003, 8}, types);
  }
  // Several chunks of rows.
  AddTypedLinear(cases, {67, 131101, 2}, {kBF16, kBF16}, Ignore::kNone, true);
  AddTypedLinear(cases, {67, 131101, 2}, {kF16, kF16}, Ignore::kSome, false);
}

}  // namespace

std::vector<Case> LossCases() {
  std::vector<Case> cases;
  for (bool with_acc : {false, true}) {
    AddLinear(cases, {1, 2, 1}, with_acc);
    AddLinear(cases, {7, 19, 5}, with_acc);
    AddLinear(cases, {130, 257, 33}, with_acc);
  }
  AddLinear(cases, {67, 131101, 2}, false);  // two chunks of rows
  AddTypedCases(cases);
  return cases;
}

}  // namespace ft::conformance
