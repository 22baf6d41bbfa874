// Attention in float64, by the formulas of ft.attention's description: what its cases are held to.
#pragma once

#include <string>
#include <vector>

#include "runtime/base/workspace.h"
#include "test/conformance/case.h"

namespace ft::conformance {

struct AttentionCase {
  int64_t batch, positions, heads, kv_heads, size;
  bool causal;
  int64_t window = 0;  // 0: all
  double scale = 0;    // 0: 1 / sqrt(size)
  double softcap = 0;  // 0: none
  bool alibi = false;
  std::vector<int64_t> lengths = {};   // [batch]; empty: all keys count
  std::vector<int64_t> segments = {};  // [batch, positions]; empty: one segment
  double rate = 0;                     // of dropout

  static constexpr int64_t kSeed = 0x123456789, kStep = 7, kRank = 3, kStream = 5;

  bool Sees(int64_t b, int64_t query, int64_t key) const;
  // What the probabilities of this row, of [batch, heads, positions], are multiplied by, key by key.
  std::vector<double> Factors(int64_t row) const;
  // Of a query and a key with this product, and its derivative by that.
  double Score(int64_t head, int64_t query, int64_t key, double dot) const;
  double ScoreGrad(double dot) const;
  // What scores, whose rounding errors enter the exponentials absolutely, reach; what is kept of the
  // probabilities is larger by the factor of dropout, and so are its errors.
  double Magnitude() const;

  std::string Label() const;
  // Operands behind those of the op's own.
  Arrays Optional() const;
  KernelAttributes KernelAttributesOf() const;
  AttentionSizes Sizes(DType dtype) const {
    return {batch, positions, heads, kv_heads, size, dtype, !segments.empty()};
  }

 private:
  double Scale() const;
  double Slope(int64_t head) const;
};

// in: q, k, v. Results: out, lse. `magnitude` gets the sums of the magnitudes of the terms of out.
Arrays Attention(const Arrays& in, const AttentionCase& s, Array* magnitude = nullptr);

// in: dout, q, k, v, out, lse, as attention_grad takes them. Results: dq, dk, dv from the formulas: p = exp(s
// - lse), dv = (p f)^T dout, ds = p (f dout v^T - dout . out), dq = ds s' k, dk = ds^T s' q, s' the
// derivative of a score by its product, f the factor of dropout. `magnitudes` get the sums of the magnitudes
// of their terms.
Arrays AttentionGradients(const Arrays& in, const AttentionCase& s, Arrays* magnitudes);

}  // namespace ft::conformance
