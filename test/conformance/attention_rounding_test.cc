// That attention whose probabilities are rounded to 16 bits, as tensor cores want them, is within what cases
// allow on GPUs, and beyond what they allow where nothing is rounded.
#include <gtest/gtest.h>

#include <cmath>

#include "test/conformance/harness.h"

namespace ft::conformance {
namespace {

// out of a case of attention with as many heads as k and v have, its probabilities rounded before they are
// normalised.
Array RoundedAttention(const Case& c, int64_t heads, int64_t size, bool causal) {
  const Array &q = c.in[0], &k = c.in[1], &v = c.in[2];
  const int64_t positions = q.dims[1], width = heads * size;
  Array out = c.expected[0];
  for (int64_t at = 0; at < q.dims[0] * heads * positions; ++at) {
    const int64_t t = at % positions, h = at / positions % heads, batch = at / positions / heads * positions;
    const int64_t row = (batch + t) * width + h * size, seen = causal ? t + 1 : positions;
    std::vector<double> scores;
    for (int64_t u = 0; u < seen; ++u) {
      double dot = 0;
      for (int64_t i = 0; i < size; ++i)
        dot += q.values[row + i] * k.values[(batch + u) * width + h * size + i];
      scores.push_back(dot / std::sqrt(static_cast<double>(size)));
    }
    const double largest = *std::max_element(scores.begin(), scores.end());
    double sum = 0;
    for (double& score : scores) sum += score = std::exp(score - largest);
    for (int64_t i = 0; i < size; ++i) {
      double value = 0;
      for (int64_t u = 0; u < seen; ++u)
        value += RoundTo(scores[u], q.dtype) * v.values[(batch + u) * width + h * size + i];
      out.values[row + i] = RoundTo(value / sum, q.dtype);
    }
  }
  return out;
}

TEST(AttentionRounding, IsWhatRoundedProbabilitiesNeed) {
  int cases = 0;
  for (const Case& c : AttentionCases()) {
    if (c.op != "attention" || !c.label.starts_with("T 70 heads 2/2 size 64") ||
        c.rules.cuda_rounding.empty())
      continue;
    SCOPED_TRACE(c.label);
    ++cases;
    const bool causal = c.label.find("causal") != std::string::npos;
    const Arrays got = {RoundedAttention(c, 2, 64, causal), c.expected[1]};
    EXPECT_EQ(Compare(c, got, DeviceClass::kCuda), "");
    Case exact = c;
    exact.rules.cuda_rounding.clear();
    EXPECT_NE(Compare(exact, got, DeviceClass::kCuda), "");
    Arrays wrong = got;
    for (double& value : wrong[0].values) value *= 1.05;
    EXPECT_NE(Compare(c, wrong, DeviceClass::kCuda), "");
  }
  EXPECT_EQ(cases, 2) << "bf16 and f16, one of them causal";
}

}  // namespace
}  // namespace ft::conformance
