#include <cmath>

#include "runtime/base/workspace.h"
#include "test/conformance/case.h"

namespace ft::conformance {
namespace {

struct Shape {
  int64_t batch, positions, heads, kv_heads, size;
  bool causal;
};

// in: q, k, v. Results: out, lse.
Arrays Attention(const Arrays& in, const Shape& s) {
  Array out = in[0], lse = Constant({s.batch, s.heads, s.positions}, 0);
  const int64_t ldq = s.heads * s.size, ldk = s.kv_heads * s.size;
  for (int64_t b = 0; b < s.batch; ++b) {
    for (int64_t h = 0; h < s.heads; ++h) {
      const int64_t g = h / (s.heads / s.kv_heads);
      for (int64_t t = 0; t < s.positions; ++t) {
        const int64_t seen = s.causal ? t + 1 : s.positions;
        std::vector<double> weights(seen);
        double sum = 0;
        for (int64_t u = 0; u < seen; ++u) {
          double dot = 0;
          for (int64_t i = 0; i < s.size; ++i) {
            dot += in[0].values[(b * s.positions + t) * ldq + h * s.size + i] *
                   in[1].values[(b * s.positions + u) * ldk + g * s.size + i];
          }
          weights[u] = std::exp(dot / std::sqrt(double(s.size)));
          sum += weights[u];
        }
        lse.values[(b * s.heads + h) * s.positions + t] = std::log(sum);
        for (int64_t i = 0; i < s.size; ++i) {
          double value = 0;
          for (int64_t u = 0; u < seen; ++u) {
            value += weights[u] / sum * in[2].values[(b * s.positions + u) * ldk + g * s.size + i];
          }
          out.values[(b * s.positions + t) * ldq + h * s.size + i] = value;
        }
      }
    }
  }
  return {out, lse};
}

void AddCases(std::vector<Case>& cases, const Shape& s, bool with_gradient) {
  const Array q = Random({s.batch, s.positions, s.heads * s.size}, 51);
  const Array k = Random({s.batch, s.positions, s.kv_heads * s.size}, 52), v = Random(k.dims, 53);
  KernelAttributes attributes = Attributes({{"heads", s.heads}, {"kv_heads", s.kv_heads}});
  if (s.causal) attributes.Add("causal", int64_t{1});
  const std::string label = "T " + std::to_string(s.positions) + " heads " + std::to_string(s.heads) + "/" +
                            std::to_string(s.kv_heads) + " size " + std::to_string(s.size) +
                            (s.causal ? " causal" : "");
  const Arrays result = Attention({q, k, v}, s);
  const double longest = s.positions + s.size;
  // Scores reach sqrt(size); their rounding errors enter the exponentials absolutely.
  const double magnitude = 2 + std::sqrt(double(s.size));
  cases.push_back({"attention",
                   label,
                   {q, k, v},
                   attributes,
                   result,
                   {.reduction = longest, .magnitude = magnitude, .workspace_bytes = AttentionWorkspace()}});
  if (!with_gradient) return;
  const Array dout = Random(q.dims, 54), no_dlse = Constant(result[1].dims, 0);
  Arrays gradients;
  for (size_t wrt = 0; wrt < 3; ++wrt) {
    gradients.push_back(
        NumericGradient([&](const Arrays& in) { return Attention(in, s); }, {q, k, v}, wrt, {dout, no_dlse}));
  }
  // out and lse as a forward kernel would give them: rounded to f32.
  Arrays rounded = result;
  for (Array& array : rounded) {
    for (double& value : array.values) value = static_cast<float>(value);
  }
  cases.push_back({"attention_grad",
                   label,
                   {dout, q, k, v, rounded[0], rounded[1]},
                   attributes,
                   gradients,
                   {.reduction = longest,
                    .magnitude = magnitude,
                    .workspace_bytes = AttentionGradWorkspace(s.batch, s.heads, s.positions)}});
}

}  // namespace

std::vector<Case> AttentionCases() {
  std::vector<Case> cases;
  for (bool causal : {true, false}) {
    AddCases(cases, {1, 1, 1, 1, 1, causal}, true);
    AddCases(cases, {2, 5, 2, 1, 3, causal}, true);
    AddCases(cases, {1, 17, 4, 2, 5, causal}, true);
    AddCases(cases, {1, 40, 1, 1, 130, causal}, false);
    AddCases(cases, {1, 66, 2, 2, 4, causal}, true);
    AddCases(cases, {1, 35, 2, 1, 80, causal}, false);
    AddCases(cases, {2, 130, 3, 3, 64, causal}, false);
    AddCases(cases, {1, 100, 2, 1, 100, causal}, false);
    AddCases(cases, {1, 70, 2, 1, 256, causal}, false);
  }
  AddCases(cases, {1, 34, 1, 1, 65, true}, true);   // several tiles of 32
  AddCases(cases, {1, 18, 1, 1, 129, true}, true);  // several tiles of 16
  return cases;
}

}  // namespace ft::conformance
