#include <algorithm>
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
// them, each by at most half a unit of its last place, 2^-8 of it for bf16 and 2^-11 for f16.
Arrays RoundingOf(Arrays magnitudes, DType dtype) {
  if (dtype == DType::kF32) return {};
  for (Array& array : magnitudes) {
    for (double& value : array.values) value *= dtype == DType::kBF16 ? 0x1p-8 : 0x1p-11;
  }
  return magnitudes;
}

// The ops on q, k and v apart and, if `joined`, those on all in one, which differ by strides alone.
void AddTypedCases(std::vector<Case>& cases, const Shape& s, DType dtype, bool joined) {
  const Array q = As(Random({s.batch, s.positions, s.heads * s.size}, 51), dtype);
  const Array k = As(Random({s.batch, s.positions, s.kv_heads * s.size}, 52), dtype),
              v = As(Random(k.dims, 53), dtype);
  const KernelAttributes attributes = s.KernelAttributesOf();
  const std::string label = s.Label() + " " + std::string(Name(dtype));
  Array magnitude;
  Arrays result = Attention({q, k, v}, s, &magnitude);
  result[0].dtype = dtype;
  result[1].dtype = DType::kF32;
  Rules rules = {.reduction = double(s.positions + s.size),
                 .magnitude = s.Magnitude(),
                 .workspace_bytes = AttentionWorkspace(s.Sizes(dtype)),
                 .cuda_workspace_bytes = cuda_workspace::Attention(s.Sizes(dtype))};
  const bool bf16 = dtype == DType::kBF16;
  rules.cuda_rounding = RoundingOf({magnitude, Constant(result[1].dims, 0)}, dtype);
  if (bf16) rules.bf16_rounding = rules.cuda_rounding;
  const Arrays optional = s.Optional();
  cases.push_back({"attention", label, With({q, k, v}, optional), attributes, result, rules});
  if (joined)
    cases.push_back({"qkv_attention", label, With({Join({q, k, v})}, optional), attributes, result, rules});
  const Array dout = As(Random(q.dims, 54), dtype);
  // out and lse as a forward kernel would give them.
  const Array out = As(result[0], dtype), lse = As(result[1], DType::kF32);
  Arrays magnitudes, gradients = AttentionGradients({dout, q, k, v, out, lse}, s, &magnitudes);
  for (Array& gradient : gradients) gradient.dtype = dtype;
  rules.workspace_bytes = AttentionGradWorkspace(s.Sizes(dtype));
  rules.cuda_workspace_bytes = cuda_workspace::AttentionGrad(s.Sizes(dtype));
  rules.cuda_rounding = RoundingOf(magnitudes, dtype);
  if (bf16) rules.bf16_rounding = rules.cuda_rounding;
  cases.push_back(
      {"attention_grad", label, With({dout, q, k, v, out, lse}, optional), attributes, gradients, rules});
  if (!joined) return;
  if (dtype != DType::kF32) rules.cuda_rounding = {Join(rules.cuda_rounding)};
  if (bf16) rules.bf16_rounding = rules.cuda_rounding;
  cases.push_back({"qkv_attention_grad",
                   label,
                   With({dout, Join({q, k, v}), out, lse}, optional),
                   attributes,
                   {Join(gradients)},
                   rules});
}

// These shapes in each type, causal or not by turns, and one type of each on q, k and v in one: every pair of
// shape, type, causality and ops occurs, not every combination.
void AddTypedShapes(std::vector<Case>& cases, const std::vector<Shape>& shapes) {
  constexpr DType kTypes[] = {DType::kF32, DType::kBF16, DType::kF16};
  for (size_t i = 0; i < shapes.size(); ++i) {
    for (size_t j = 0; j < std::size(kTypes); ++j) {
      Shape s = shapes[i];
      s.causal = (i + j) % 2 == 0;
      AddTypedCases(cases, s, kTypes[j], j == i % std::size(kTypes));
    }
  }
}

// What scores are made of besides products of 1 / sqrt(size), on this shape: each alone and all at once, so
// that every two of them are seen together, apart and both absent.
std::vector<Shape> Forms(Shape s, int64_t window) {
  std::vector<Shape> forms;
  for (unsigned form : {1, 2, 4, 8, 15}) {
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
    // On odd sizes. Then tiles that see nothing, a little and everything: with 66, query 128 one key of the
    // first tile.
    for (const Shape& s : Forms({1, 19, 6, 2, 5, causal}, 4)) AddCases(cases, s, true);
    for (int64_t window : {1, 64, 65, 66, 130, 1 << 30})
      AddTypedCases(cases, {1, 140, 1, 1, 8, causal, window}, DType::kF32, window == 65);
  }
  AddTypedShapes(cases, Forms({1, 70, 3, 1, 20, true}, 37));
  AddTypedShapes(cases, {{1, 140, 2, 1, 80, true, 70, 0.05, 2.0, true}});
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

// This shape with lengths, segments, dropout: each alone and all at once, as above.
std::vector<Shape> Options(const Shape& plain, const std::vector<int64_t>& lengths,
                           const std::vector<int64_t>& begins) {
  std::vector<Shape> forms;
  for (unsigned form : {1, 2, 4, 7}) {
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
    std::vector<Shape> shapes = Options({4, 11, 4, 2, 3, causal}, {5, 0, 11, 1}, {3, 4, 9});
    // With all that is said of scores.
    Shape all = shapes.back();
    all.window = 4, all.scale = 0.3, all.softcap = 1.5, all.alibi = true;
    shapes.push_back(all);
    // Lengths that nobody has, on rows of no whole blocks of random numbers.
    shapes.push_back({3, 5, 1, 1, 4, causal, 0, 0, 0, false, {-7, 6, std::numeric_limits<int32_t>::max()}});
    for (const Shape& s : shapes) AddCases(cases, s, true);
  }
  // Whole tiles and blocks that are seen by none, by some and by all.
  AddTypedShapes(cases, Options({2, 140, 2, 1, 8, true}, {130, 64}, {1, 64, 70, 128}));
  AddTypedShapes(cases, Options({3, 70, 2, 1, 80, true, 20}, {70, 0, 33}, {5, 66}));
  Shape wide{2, 33, 1, 1, 130, true};
  wide.lengths = {17, 1}, wide.segments = Segments(wide, {2, 16, 20}), wide.rate = 0.5;
  AddTypedShapes(cases, {wide});
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
    AddCases(cases, {1, 66, 2, 2, 4, causal}, true);
    AddCases(cases, {1, 40, 1, 1, 130, causal}, false);
    AddCases(cases, {1, 70, 2, 1, 100, causal}, false);
  }
  AddCases(cases, {1, 34, 1, 1, 65, true}, true);   // several tiles of 32
  AddCases(cases, {1, 18, 1, 1, 129, true}, true);  // several tiles of 16
  AddTypedShapes(cases, {{1, 1, 1, 1, 1, true},
                         {2, 5, 2, 1, 3, true},
                         {1, 17, 4, 2, 5, true},
                         {1, 35, 2, 1, 80, true},
                         {2, 70, 2, 2, 64, true},
                         {1, 66, 2, 1, 256, true},
                         {1, 130, 3, 1, 128, true},  // three heads on each of k and v
                         {2, 66, 2, 1, 77, true}});  // rows of no whole packs
  return cases;
}

}  // namespace ft::conformance
