#include "test/conformance/attention_reference.h"

#include <algorithm>
#include <cmath>

#include "runtime/base/philox.h"

namespace ft::conformance {

double AttentionCase::Scale() const { return scale > 0 ? scale : 1 / std::sqrt(double(size)); }

bool AttentionCase::Sees(int64_t b, int64_t query, int64_t key) const {
  if ((causal && key > query) || (window > 0 && std::abs(key - query) >= window)) return false;
  if (!lengths.empty() && key >= lengths[b]) return false;
  for (int64_t t = std::min(query, key); !segments.empty() && t < std::max(query, key); ++t) {
    if (segments[b * positions + t] != segments[b * positions + t + 1]) return false;
  }
  return true;
}

double AttentionCase::Factor(int64_t row, int64_t key) const {
  if (rate == 0) return 1;
  const uint64_t element = (kRank * batch * heads * positions + row) * positions + key;
  const PhiloxBlock words = Philox4x32(kSeed, kFirstOpStream + kStream, kStep, element / 4);
  return PhiloxUniform(words[element % 4]) >= rate ? 1 / (1 - rate) : 0;
}

// BLOOM's: the first heads have those of `whole` heads, others every other one of twice as many.
double AttentionCase::Slope(int64_t head) const {
  int64_t whole = 1;
  while (2 * whole <= heads) whole *= 2;
  const double step = head < whole ? 8.0 / whole : 4.0 / whole;
  return alibi ? std::pow(2, -step * (head < whole ? head + 1 : 2 * (head - whole) + 1)) : 0;
}

double AttentionCase::Score(int64_t head, int64_t query, int64_t key, double dot) const {
  const double scaled = dot * Scale();
  return (softcap > 0 ? softcap * std::tanh(scaled / softcap) : scaled) + Slope(head) * (key - query);
}

double AttentionCase::ScoreGrad(double dot) const {
  return softcap > 0 ? Scale() / std::pow(std::cosh(dot * Scale() / softcap), 2) : Scale();
}

double AttentionCase::Magnitude() const {
  const double reached = Scale() * size + (alibi ? std::min(10.0, double(positions)) : 0);
  return (2 + (softcap > 0 ? std::min(softcap, reached) : reached)) / (1 - rate);
}

std::string AttentionCase::Label() const {
  std::string label = "T " + std::to_string(positions) + " heads " + std::to_string(heads) + "/" +
                      std::to_string(kv_heads) + " size " + std::to_string(size);
  if (causal) label += " causal";
  if (window > 0) label += " window " + std::to_string(window);
  if (scale > 0) label += " scale " + std::to_string(scale);
  if (softcap > 0) label += " softcap " + std::to_string(softcap);
  if (alibi) label += " alibi";
  for (int64_t length : lengths) label += " length " + std::to_string(length);
  if (!segments.empty()) label += " segments";
  return rate > 0 ? label + " dropout " + std::to_string(rate) : label;
}

Arrays AttentionCase::Optional() const {
  Arrays operands(3, Absent());
  if (!lengths.empty()) operands[0] = {{batch}, {lengths.begin(), lengths.end()}, DType::kI32};
  if (!segments.empty()) operands[1] = {{batch, positions}, {segments.begin(), segments.end()}, DType::kI32};
  if (rate > 0) operands[2] = {{3}, {double(kSeed), double(kStep), double(kRank)}, DType::kI64};
  return operands;
}

KernelAttributes AttentionCase::KernelAttributesOf() const {
  std::vector<std::pair<std::string, KernelAttributes::Value>> entries = {{"heads", heads},
                                                                          {"kv_heads", kv_heads}};
  if (causal) entries.emplace_back("causal", int64_t{1});
  if (window > 0) entries.emplace_back("window", window);
  if (scale > 0) entries.emplace_back("scale", scale);
  if (softcap > 0) entries.emplace_back("softcap", softcap);
  if (alibi) entries.emplace_back("alibi", int64_t{1});
  if (rate > 0) entries.insert(entries.end(), {{"rate", rate}, {"stream", kStream}});
  return Attributes(std::move(entries));
}

Arrays Attention(const Arrays& in, const AttentionCase& s) {
  Array out = in[0], lse = Constant({s.batch, s.heads, s.positions}, 0);
  const int64_t ldq = s.heads * s.size, ldk = s.kv_heads * s.size;
  for (int64_t b = 0; b < s.batch; ++b) {
    for (int64_t h = 0; h < s.heads; ++h) {
      const int64_t g = h / (s.heads / s.kv_heads);
      for (int64_t t = 0; t < s.positions; ++t) {
        std::vector<double> weights(s.positions);
        double sum = 0;
        for (int64_t u = 0; u < s.positions; ++u) {
          if (!s.Sees(b, t, u)) continue;
          double dot = 0;
          for (int64_t i = 0; i < s.size; ++i) {
            dot += in[0].values[(b * s.positions + t) * ldq + h * s.size + i] *
                   in[1].values[(b * s.positions + u) * ldk + g * s.size + i];
          }
          weights[u] = std::exp(s.Score(h, t, u, dot));
          sum += weights[u];
        }
        const int64_t row = (b * s.heads + h) * s.positions + t;
        if (sum == 0) sum = 1;  // nothing is seen: all is 0
        lse.values[row] = std::log(sum);
        for (int64_t u = 0; u < s.positions; ++u) weights[u] *= s.Factor(row, u) / sum;
        for (int64_t i = 0; i < s.size; ++i) {
          double value = 0;
          for (int64_t u = 0; u < s.positions; ++u) {
            value += weights[u] * in[2].values[(b * s.positions + u) * ldk + g * s.size + i];
          }
          out.values[(b * s.positions + t) * ldq + h * s.size + i] = value;
        }
      }
    }
  }
  return {out, lse};
}

Arrays AttentionGradients(const Arrays& in, const AttentionCase& s, double unit) {
  const std::vector<double>&dout = in[0].values, &q = in[1].values, &k = in[2].values, &v = in[3].values,
        &out = in[4].values;
  Array dq = Constant(in[1].dims, 0), dk = Constant(in[2].dims, 0), dv = Constant(in[3].dims, 0);
  const int64_t ldq = s.heads * s.size, ldk = s.kv_heads * s.size;
  for (int64_t b = 0; b < s.batch; ++b) {
    for (int64_t h = 0; h < s.heads; ++h) {
      for (int64_t t = 0; t < s.positions; ++t) {
        const int64_t row = (b * s.positions + t) * ldq + h * s.size;
        const int64_t lse_row = (b * s.heads + h) * s.positions + t;
        const double lse = in[5].values[lse_row];
        for (int64_t u = 0; u < s.positions; ++u) {
          if (!s.Sees(b, t, u)) continue;
          const int64_t key = (b * s.positions + u) * ldk + h / (s.heads / s.kv_heads) * s.size;
          const double factor = s.Factor(lse_row, u);
          double dot = 0, dp = 0;
          for (int64_t i = 0; i < s.size; ++i) {
            dot += q[row + i] * k[key + i];
            dp += dout[row + i] * (factor * v[key + i] - out[row + i]);
          }
          const double p = std::exp(s.Score(h, t, u, dot) - lse), ds = p * dp * s.ScoreGrad(dot);
          const auto term = [unit](double x) { return unit > 0 ? std::abs(x) * unit : x; };
          for (int64_t i = 0; i < s.size; ++i) {
            dq.values[row + i] += term(ds * k[key + i]);
            dk.values[key + i] += term(ds * q[row + i]);
            dv.values[key + i] += term(p * factor * dout[row + i]);
          }
        }
      }
    }
  }
  return {dq, dk, dv};
}

}  // namespace ft::conformance
