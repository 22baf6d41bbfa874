#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

#include "runtime/base/cuda_workspace.h"
#include "runtime/base/workspace.h"
#include "test/conformance/attention_reference.h"

namespace ft::conformance {
namespace {

using Shape = AttentionCase;

Arrays With(Arrays operands, const Arrays& more) {
  operands.insert(operands.end(), more.begin(), more.end());
  return operands;
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
                   With({q, k, v}, s.Optional()),
                   attributes,
                   result,
                   {.reduction = longest,
                    .magnitude = magnitude,
                    .workspace_bytes = AttentionWorkspace(s.Sizes(DType::kF32)),
                    .cuda_workspace_bytes = cuda_workspace::Attention(s.Sizes(DType::kF32))}});
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
                   With({dout, q, k, v, rounded[0], rounded[1]}, s.Optional()),
                   attributes,
                   gradients,
                   {.reduction = longest,
                    .magnitude = magnitude,
                    .workspace_bytes = AttentionGradWorkspace(s.Sizes(DType::kF32)),
                    .cuda_workspace_bytes = cuda_workspace::AttentionGrad(s.Sizes(DType::kF32))}});
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
                 .workspace_bytes = AttentionWorkspace(s.Sizes(dtype)),
                 .cuda_workspace_bytes = cuda_workspace::Attention(s.Sizes(dtype))};
  const bool bf16 = dtype == DType::kBF16;
  const double unit = bf16 ? 0x1p-8 : dtype == DType::kF16 ? 0x1p-11 : 0;
  if (unit > 0) rules.cudnn_rounding = OutRounding({q, k, v}, s, unit);
  if (bf16) rules.bf16_rounding = rules.cudnn_rounding;
  const Arrays optional = s.Optional();
  cases.push_back({"attention", label, With({q, k, v}, optional), attributes, result, rules});
  cases.push_back({"qkv_attention", label, With({Join({q, k, v})}, optional), attributes, result, rules});
  const Array dout = As(Random(q.dims, 54), dtype);
  // out and lse as a forward kernel would give them.
  const Array out = As(result[0], dtype), lse = As(result[1], DType::kF32);
  Arrays gradients = AttentionGradients({dout, q, k, v, out, lse}, s);
  for (Array& gradient : gradients) gradient.dtype = dtype;
  rules.workspace_bytes = AttentionGradWorkspace(s.Sizes(dtype));
  rules.cuda_workspace_bytes = cuda_workspace::AttentionGrad(s.Sizes(dtype));
  Arrays rounding;
  if (unit > 0) rounding = AttentionGradients({dout, q, k, v, out, lse}, s, unit);
  rules.cudnn_rounding = rounding;
  if (bf16) rules.bf16_rounding = rounding;
  cases.push_back(
      {"attention_grad", label, With({dout, q, k, v, out, lse}, optional), attributes, gradients, rules});
  if (unit > 0) rules.cudnn_rounding = {Join(rounding)};
  if (bf16) rules.bf16_rounding = rules.cudnn_rounding;
  cases.push_back({"qkv_attention_grad",
                   label,
                   With({dout, Join({q, k, v}), out, lse}, optional),
                   attributes,
                   {Join(gradients)},
                   rules});
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

// Ids of segments that begin at these positions, in every sequence, shifted by one from one to the next.
std::vector<int64_t> Segments(const Shape& s, const std::vector<int64_t>& begins) {
  // Of any value, and some that come again.
  constexpr int64_t kIds[] = {7, -3, std::numeric_limits<int32_t>::min(), 7, 0, -3};
  std::vector<int64_t> ids;
  for (int64_t b = 0; b < s.batch; ++b) {
    for (int64_t t = 0; t < s.positions; ++t) {
      const auto passed = [&](int64_t begin) { return begin <= t - b; };
      ids.push_back(kIds[std::count_if(begins.begin(), begins.end(), passed) % std::size(kIds)]);
    }
  }
  return ids;
}

// This shape with lengths, segments, dropout: alone and in all combinations, or alone and all at once.
std::vector<Shape> Options(const Shape& plain, const std::vector<int64_t>& lengths,
                           const std::vector<int64_t>& begins, bool combined) {
  std::vector<Shape> forms;
  for (unsigned form = 1; form < 8; ++form) {
    if (!combined && !std::has_single_bit(form) && form != 7) continue;
    Shape s = plain;
    if (form & 1) s.lengths = lengths;
    if (form & 2) s.segments = Segments(s, begins);
    if (form & 4) s.rate = 0.25;
    forms.push_back(s);
  }
  return forms;
}

void AddOptions(std::vector<Case>& cases) {
  for (bool causal : {true, false}) {
    for (const Shape& s : Options({4, 11, 4, 2, 3, causal}, {5, 0, 11, 1}, {3, 4, 9}, true)) {
      AddCases(cases, s, true);
      // With all that is said of scores.
      Shape all = s;
      all.window = 4, all.scale = 0.3, all.softcap = 1.5, all.alibi = true;
      AddCases(cases, all, true);
    }
    // Lengths that nobody has, on rows of no whole blocks of random numbers.
    AddCases(cases, {3, 5, 1, 1, 4, causal, 0, 0, 0, false, {-7, 6, std::numeric_limits<int32_t>::max()}},
             true);
    // Whole tiles and blocks that are seen by none, by some and by all.
    const std::vector<int64_t> begins = {1, 64, 70, 128, 190};
    for (DType dtype : {DType::kF32, DType::kBF16, DType::kF16}) {
      for (const Shape& s : Options({2, 200, 2, 1, 8, causal}, {130, 64}, begins, dtype == DType::kF32))
        AddTypedCases(cases, s, dtype);
      for (const Shape& s : Options({3, 70, 4, 2, 80, causal, 20}, {70, 0, 33}, {5, 66}, false))
        AddTypedCases(cases, s, dtype);
      Shape wide{2, 33, 1, 1, 130, causal};
      wide.lengths = {17, 1}, wide.segments = Segments(wide, {2, 16, 20}), wide.rate = 0.5;
      AddTypedCases(cases, wide, dtype);
    }
  }
}

}  // namespace

std::vector<Case> AttentionCases() {
  std::vector<Case> cases;
  AddForms(cases);
  AddOptions(cases);
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
