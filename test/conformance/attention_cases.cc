#include <bit>
#include <cmath>

#include "runtime/base/cuda_workspace.h"
#include "runtime/base/workspace.h"
#include "test/conformance/case.h"

namespace ft::conformance {
namespace {

struct Shape {
  int64_t batch, positions, heads, kv_heads, size;
  bool causal;
  int64_t window = 0;  // 0: all
  double scale = 0;    // 0: 1 / sqrt(size)
  double softcap = 0;  // 0: none
  bool alibi = false;

  double Scale() const { return scale > 0 ? scale : 1 / std::sqrt(double(size)); }
  bool Sees(int64_t query, int64_t key) const {
    return (!causal || key <= query) && (window == 0 || std::abs(key - query) < window);
  }
  // BLOOM's: the first heads have those of `whole` heads, others every other one of twice as many.
  double Slope(int64_t head) const {
    int64_t whole = 1;
    while (2 * whole <= heads) whole *= 2;
    const double step = head < whole ? 8.0 / whole : 4.0 / whole;
    return alibi ? std::pow(2, -step * (head < whole ? head + 1 : 2 * (head - whole) + 1)) : 0;
  }
  double Score(int64_t head, int64_t query, int64_t key, double dot) const {
    const double scaled = dot * Scale();
    return (softcap > 0 ? softcap * std::tanh(scaled / softcap) : scaled) + Slope(head) * (key - query);
  }
  // Its derivative by `dot`.
  double ScoreGrad(double dot) const {
    return softcap > 0 ? Scale() / std::pow(std::cosh(dot * Scale() / softcap), 2) : Scale();
  }
  // What scores, whose rounding errors enter the exponentials absolutely, reach.
  double Magnitude() const {
    const double reached = Scale() * size + (alibi ? std::min(10.0, double(positions)) : 0);
    return 2 + (softcap > 0 ? std::min(softcap, reached) : reached);
  }

  std::string Label() const {
    std::string label = "T " + std::to_string(positions) + " heads " + std::to_string(heads) + "/" +
                        std::to_string(kv_heads) + " size " + std::to_string(size);
    if (causal) label += " causal";
    if (window > 0) label += " window " + std::to_string(window);
    if (scale > 0) label += " scale " + std::to_string(scale);
    if (softcap > 0) label += " softcap " + std::to_string(softcap);
    return label + (alibi ? " alibi" : "");
  }
  KernelAttributes KernelAttributesOf() const {
    std::vector<std::pair<std::string, KernelAttributes::Value>> entries = {{"heads", heads},
                                                                            {"kv_heads", kv_heads}};
    if (causal) entries.emplace_back("causal", int64_t{1});
    if (window > 0) entries.emplace_back("window", window);
    if (scale > 0) entries.emplace_back("scale", scale);
    if (softcap > 0) entries.emplace_back("softcap", softcap);
    if (alibi) entries.emplace_back("alibi", int64_t{1});
    return Attributes(std::move(entries));
  }
};

int64_t CudaWorkspace(const Shape& s, DType dtype) {
  return cuda_workspace::Attention(s.batch, s.positions, s.heads, s.kv_heads, s.size, dtype);
}
int64_t GradWorkspace(const Shape& s, DType dtype) {
  return AttentionGradWorkspace(s.batch, s.positions, s.heads, s.kv_heads, s.size, dtype != DType::kF32);
}
int64_t CudaGradWorkspace(const Shape& s, DType dtype) {
  return cuda_workspace::AttentionGrad(s.batch, s.positions, s.heads, s.kv_heads, s.size, dtype);
}

// in: q, k, v. Results: out, lse.
Arrays Attention(const Arrays& in, const Shape& s) {
  Array out = in[0], lse = Constant({s.batch, s.heads, s.positions}, 0);
  const int64_t ldq = s.heads * s.size, ldk = s.kv_heads * s.size;
  for (int64_t b = 0; b < s.batch; ++b) {
    for (int64_t h = 0; h < s.heads; ++h) {
      const int64_t g = h / (s.heads / s.kv_heads);
      for (int64_t t = 0; t < s.positions; ++t) {
        std::vector<double> weights(s.positions);
        double sum = 0;
        for (int64_t u = 0; u < s.positions; ++u) {
          if (!s.Sees(t, u)) continue;
          double dot = 0;
          for (int64_t i = 0; i < s.size; ++i) {
            dot += in[0].values[(b * s.positions + t) * ldq + h * s.size + i] *
                   in[1].values[(b * s.positions + u) * ldk + g * s.size + i];
          }
          weights[u] = std::exp(s.Score(h, t, u, dot));
          sum += weights[u];
        }
        lse.values[(b * s.heads + h) * s.positions + t] = std::log(sum);
        for (int64_t i = 0; i < s.size; ++i) {
          double value = 0;
          for (int64_t u = 0; u < s.positions; ++u) {
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
  const KernelAttributes attributes = s.KernelAttributesOf();
  const std::string label = s.Label();
  const Arrays result = Attention({q, k, v}, s);
  const double longest = s.positions + s.size;
  const double magnitude = s.Magnitude();
  cases.push_back({"attention",
                   label,
                   {q, k, v},
                   attributes,
                   result,
                   {.reduction = longest,
                    .magnitude = magnitude,
                    .workspace_bytes = AttentionWorkspace(),
                    .cuda_workspace_bytes = CudaWorkspace(s, DType::kF32)}});
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
                    .workspace_bytes = GradWorkspace(s, DType::kF32),
                    .cuda_workspace_bytes = CudaGradWorkspace(s, DType::kF32)}});
}

// in: dout, q, k, v, out, lse, as attention_grad takes them. Results: dq, dk, dv from the formulas: p = exp(s
// - lse), dv = p^T dout, ds = p (dout v^T - dout . out), dq = ds s' k, dk = ds^T s' q, s' the derivative of a
// score by its product.
// With a `unit`, that times the sums of the magnitudes of their terms.
Arrays Gradients(const Arrays& in, const Shape& s, double unit = 0) {
  const std::vector<double>&dout = in[0].values, &q = in[1].values, &k = in[2].values, &v = in[3].values,
        &out = in[4].values;
  Array dq = Constant(in[1].dims, 0), dk = Constant(in[2].dims, 0), dv = Constant(in[3].dims, 0);
  const int64_t ldq = s.heads * s.size, ldk = s.kv_heads * s.size;
  for (int64_t b = 0; b < s.batch; ++b) {
    for (int64_t h = 0; h < s.heads; ++h) {
      for (int64_t t = 0; t < s.positions; ++t) {
        const int64_t row = (b * s.positions + t) * ldq + h * s.size;
        const double lse = in[5].values[(b * s.heads + h) * s.positions + t];
        for (int64_t u = 0; u < s.positions; ++u) {
          if (!s.Sees(t, u)) continue;
          const int64_t key = (b * s.positions + u) * ldk + h / (s.heads / s.kv_heads) * s.size;
          double dot = 0, dp = 0;
          for (int64_t i = 0; i < s.size; ++i) {
            dot += q[row + i] * k[key + i];
            dp += dout[row + i] * (v[key + i] - out[row + i]);
          }
          const double p = std::exp(s.Score(h, t, u, dot) - lse), ds = p * dp * s.ScoreGrad(dot);
          const auto term = [unit](double x) { return unit > 0 ? std::abs(x) * unit : x; };
          for (int64_t i = 0; i < s.size; ++i) {
            dq.values[row + i] += term(ds * k[key + i]);
            dk.values[key + i] += term(ds * q[row + i]);
            dv.values[key + i] += term(p * dout[row + i]);
          }
        }
      }
    }
  }
  return {dq, dk, dv};
}

// Side by side: the last dimension of one after that of the other.
Array Join(const Arrays& parts) {
  Array whole = parts[0];
  whole.dims.back() = 0;
  for (const Array& part : parts) whole.dims.back() += part.dims.back();
  whole.values.clear();
  const int64_t rows = parts[0].dims[0] * parts[0].dims[1];
  for (int64_t row = 0; row < rows; ++row) {
    for (const Array& part : parts) {
      const auto begin = part.values.begin() + row * part.dims.back();
      whole.values.insert(whole.values.end(), begin, begin + part.dims.back());
    }
  }
  return whole;
}

// What products of 16-bit numbers add to the error: probabilities and gradients of scores are rounded to
// them, each by at most `unit` of itself, 2^-8 for bf16 and 2^-11 for f16. Of out and lse.
Arrays OutRounding(const Arrays& in, const Shape& s, double unit) {
  Arrays magnitudes = in;
  for (double& value : magnitudes[2].values) value = std::abs(value) * unit;
  Arrays result = Attention(magnitudes, s);
  result[1] = Constant(result[1].dims, 0);
  return result;
}

void AddTypedCases(std::vector<Case>& cases, const Shape& s, DType dtype) {
  const Array q = As(Random({s.batch, s.positions, s.heads * s.size}, 51), dtype);
  const Array k = As(Random({s.batch, s.positions, s.kv_heads * s.size}, 52), dtype),
              v = As(Random(k.dims, 53), dtype);
  const KernelAttributes attributes = s.KernelAttributesOf();
  const std::string label = s.Label() + " " + std::string(Name(dtype));
  Arrays result = Attention({q, k, v}, s);
  result[0].dtype = dtype;
  result[1].dtype = DType::kF32;
  Rules rules = {.reduction = double(s.positions + s.size),
                 .magnitude = s.Magnitude(),
                 .workspace_bytes = AttentionWorkspace(),
                 .cuda_workspace_bytes = CudaWorkspace(s, dtype)};
  const bool bf16 = dtype == DType::kBF16;
  const double unit = bf16 ? 0x1p-8 : dtype == DType::kF16 ? 0x1p-11 : 0;
  if (unit > 0) rules.cudnn_rounding = OutRounding({q, k, v}, s, unit);
  if (bf16) rules.bf16_rounding = rules.cudnn_rounding;
  cases.push_back({"attention", label, {q, k, v}, attributes, result, rules});
  cases.push_back({"qkv_attention", label, {Join({q, k, v})}, attributes, result, rules});
  const Array dout = As(Random(q.dims, 54), dtype);
  // out and lse as a forward kernel would give them.
  const Array out = As(result[0], dtype), lse = As(result[1], DType::kF32);
  Arrays gradients = Gradients({dout, q, k, v, out, lse}, s);
  for (Array& gradient : gradients) gradient.dtype = dtype;
  rules.workspace_bytes = GradWorkspace(s, dtype);
  rules.cuda_workspace_bytes = CudaGradWorkspace(s, dtype);
  Arrays rounding;
  if (unit > 0) rounding = Gradients({dout, q, k, v, out, lse}, s, unit);
  rules.cudnn_rounding = rounding;
  if (bf16) rules.bf16_rounding = rounding;
  cases.push_back({"attention_grad", label, {dout, q, k, v, out, lse}, attributes, gradients, rules});
  if (unit > 0) rules.cudnn_rounding = {Join(rounding)};
  if (bf16) rules.bf16_rounding = rules.cudnn_rounding;
  cases.push_back(
      {"qkv_attention_grad", label, {dout, Join({q, k, v}), out, lse}, attributes, {Join(gradients)}, rules});
}

// What scores are made of besides products of 1 / sqrt(size), on this shape: alone and in all combinations,
// or alone and all at once.
std::vector<Shape> Forms(Shape s, int64_t window, bool combined) {
  std::vector<Shape> forms;
  for (unsigned form = 1; form < 16; ++form) {
    if (!combined && !std::has_single_bit(form) && form != 15) continue;
    s.window = form & 1 ? window : 0;
    s.scale = form & 2 ? 0.3 : 0;
    s.softcap = form & 4 ? 1.5 : 0;
    s.alibi = form & 8;
    forms.push_back(s);
  }
  return forms;
}

void AddForms(std::vector<Case>& cases) {
  for (bool causal : {true, false}) {
    // Tiles that see nothing, a little and everything; every combination on odd sizes.
    for (const Shape& s : Forms({1, 19, 6, 2, 5, causal}, 4, true)) AddCases(cases, s, true);
    for (int64_t window : {1, 64, 65, 130, 1 << 30}) {
      AddTypedCases(cases, {1, 260, 2, 1, 8, causal, window}, DType::kF32);
    }
    for (DType dtype : {DType::kF32, DType::kBF16, DType::kF16}) {
      for (const Shape& s : Forms({1, 70, 3, 1, 20, causal}, 37, dtype == DType::kF32))
        AddTypedCases(cases, s, dtype);
      AddTypedCases(cases, {1, 200, 2, 1, 80, causal, 70, 0.05, 2.0, true}, dtype);
    }
  }
}

}  // namespace

std::vector<Case> AttentionCases() {
  std::vector<Case> cases;
  AddForms(cases);
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
  for (DType dtype : {DType::kF32, DType::kBF16, DType::kF16}) {
    for (bool causal : {true, false}) {
      AddTypedCases(cases, {1, 1, 1, 1, 1, causal}, dtype);
      AddTypedCases(cases, {2, 5, 2, 1, 3, causal}, dtype);
      AddTypedCases(cases, {1, 17, 4, 2, 5, causal}, dtype);
      AddTypedCases(cases, {1, 35, 2, 1, 80, causal}, dtype);
      AddTypedCases(cases, {2, 130, 3, 3, 64, causal}, dtype);
      AddTypedCases(cases, {1, 70, 2, 1, 256, causal}, dtype);
      AddTypedCases(cases, {1, 150, 6, 2, 128, causal}, dtype);  // three heads on each of k and v
      AddTypedCases(cases, {2, 70, 3, 1, 77, causal}, dtype);    // rows of no whole packs
    }
  }
  return cases;
}

}  // namespace ft::conformance
