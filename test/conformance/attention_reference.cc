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

std::vector<double> AttentionCase::Factors(int64_t row) const {
  std::vector<double> factors(positions, 1.0);
  if (rate == 0) return factors;
  const uint64_t first = (kRank * batch * heads * positions + row) * positions;
  PhiloxBlock words = {};
  for (int64_t key = 0; key < positions; ++key) {
    const uint64_t element = first + key;
    if (key == 0 || element % 4 == 0) words = Philox4x32(kSeed, kFirstOpStream + kStream, kStep, element / 4);
    factors[key] = PhiloxUniform(words[element % 4]) >= rate ? 1 / (1 - rate) : 0;
  }
  return factors;
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

namespace {

double Dot(const double* a, const double* b, int64_t n) {
  double even = 0, odd = 0;  // two chains, which a processor adds to at once
  for (int64_t i = 0; i + 1 < n; i += 2) {
    even += a[i] * b[i];
    odd += a[i + 1] * b[i + 1];
  }
  return even + odd + (n % 2 == 0 ? 0 : a[n - 1] * b[n - 1]);
}

// to += factor x, and, where there are magnitudes, they += |factor x|.
void AddTerms(double factor, const double* x, int64_t n, double* to, double* magnitudes) {
  for (int64_t i = 0; i < n; ++i) to[i] += factor * x[i];
  for (int64_t i = 0; magnitudes != nullptr && i < n; ++i) magnitudes[i] += std::abs(factor * x[i]);
}

double* At(Array* array, int64_t i) { return array == nullptr ? nullptr : array->values.data() + i; }

}  // namespace

Arrays Attention(const Arrays& in, const AttentionCase& s, Array* magnitude) {
  Array out = Constant(in[0].dims, 0), lse = Constant({s.batch, s.heads, s.positions}, 0);
  if (magnitude != nullptr) *magnitude = out;
  out.dtype = in[0].dtype;
  const double *q = in[0].values.data(), *k = in[1].values.data(), *v = in[2].values.data();
  const int64_t ldq = s.heads * s.size, ldk = s.kv_heads * s.size;
  std::vector<double> weights(s.positions);
  for (int64_t row = 0; row < s.batch * s.heads * s.positions; ++row) {
    const int64_t b = row / s.positions / s.heads, h = row / s.positions % s.heads, t = row % s.positions;
    const int64_t query = (b * s.positions + t) * ldq + h * s.size,
                  keys = b * s.positions * ldk + h / (s.heads / s.kv_heads) * s.size;
    double sum = 0;
    for (int64_t u = 0; u < s.positions; ++u) {
      const bool sees = s.Sees(b, t, u);
      weights[u] = sees ? std::exp(s.Score(h, t, u, Dot(q + query, k + keys + u * ldk, s.size))) : 0;
      sum += weights[u];
    }
    if (sum == 0) sum = 1;  // nothing is seen: all is 0
    lse.values[row] = std::log(sum);
    const std::vector<double> factors = s.Factors(row);
    for (int64_t u = 0; u < s.positions; ++u) {
      const double weight = weights[u] * factors[u] / sum;
      if (weight != 0) AddTerms(weight, v + keys + u * ldk, s.size, At(&out, query), At(magnitude, query));
    }
  }
  return {out, lse};
}

Arrays AttentionGradients(const Arrays& in, const AttentionCase& s, Arrays* magnitudes) {
  const double *dout = in[0].values.data(), *q = in[1].values.data(), *k = in[2].values.data(),
               *v = in[3].values.data(), *out = in[4].values.data();
  Arrays sums = {Constant(in[1].dims, 0), Constant(in[2].dims, 0), Constant(in[3].dims, 0)};
  *magnitudes = sums;
  const auto add = [&](size_t wrt, int64_t at, double factor, const double* x) {
    AddTerms(factor, x, s.size, At(&sums[wrt], at), At(&(*magnitudes)[wrt], at));
  };
  const int64_t ldq = s.heads * s.size, ldk = s.kv_heads * s.size;
  for (int64_t lse_row = 0; lse_row < s.batch * s.heads * s.positions; ++lse_row) {
    const int64_t b = lse_row / s.positions / s.heads, h = lse_row / s.positions % s.heads,
                  t = lse_row % s.positions;
    const int64_t row = (b * s.positions + t) * ldq + h * s.size;
    const double lse = in[5].values[lse_row], delta = Dot(dout + row, out + row, s.size);
    const std::vector<double> factors = s.Factors(lse_row);
    for (int64_t u = 0; u < s.positions; ++u) {
      if (!s.Sees(b, t, u)) continue;
      const int64_t key = (b * s.positions + u) * ldk + h / (s.heads / s.kv_heads) * s.size;
      const double dot = Dot(q + row, k + key, s.size),
                   dp = factors[u] * Dot(dout + row, v + key, s.size) - delta;
      const double p = std::exp(s.Score(h, t, u, dot) - lse), ds = p * dp * s.ScoreGrad(dot);
      add(0, row, ds, k + key);
      add(1, key, ds, q + row);
      add(2, key, p * factors[u], dout + row);
    }
  }
  return sums;
}

}  // namespace ft::conformance
