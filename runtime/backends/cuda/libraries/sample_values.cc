#include "runtime/backends/cuda/libraries/sample_values.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numbers>

#include "runtime/base/convert_elements.h"
#include "runtime/base/philox.h"
#include "runtime/base/status_macros.h"

namespace ft::cuda {
namespace {

// Values that are drawn; a longer operand has them again and again. A prime, so that rows of a matrix do not
// repeat.
constexpr size_t kDrawn = (size_t{1} << 17) - 1;
// A product sums thousands of products of two, again and again where it accumulates: far from the largest
// f16.
constexpr double kDeviation = 0.125;

std::vector<float> Normal() {
  std::vector<float> values(kDrawn);
  for (size_t i = 0; i < kDrawn; i += 2) {
    const PhiloxBlock words = Philox4x32(/*seed=*/0, /*stream=*/0, /*step=*/0, i / 2);
    // Box and Muller; 1 - u is never 0.
    const double radius = kDeviation * std::sqrt(-2 * std::log(1.0 - PhiloxUniform(words[0])));
    const double angle = 2 * std::numbers::pi * PhiloxUniform(words[1]);
    values[i] = static_cast<float>(radius * std::cos(angle));
    if (i + 1 < kDrawn) values[i + 1] = static_cast<float>(radius * std::sin(angle));
  }
  return values;
}

// Elements from the first to the last of `rows` rows of `columns`, `stride` apart.
int64_t Extent(int64_t rows, int64_t columns, int64_t stride) {
  return rows <= 0 || columns <= 0 ? 0 : (rows - 1) * stride + columns;
}

int64_t ExtentOfA(const ProductSpec& s) {
  return s.transpose_a ? Extent(s.k, s.m, s.row_a) : Extent(s.m, s.k, s.row_a);
}
int64_t ExtentOfB(const ProductSpec& s) {
  return s.transpose_b ? Extent(s.n, s.k, s.row_b) : Extent(s.k, s.n, s.row_b);
}
// Of floats of 8 bits, which are bytes.
DType ElementsOf(const ProductSpec& s) { return s.float8 ? DType::kU8 : s.input; }
int64_t ScalesOf(ScaleOf scale, int64_t rows, int64_t k) {
  const ScaleStrides strides = StridesOf(scale, rows, k);
  const int64_t blocks = k / kFloat8Block;
  if (scale == ScaleOf::kTensor) return 1;
  return scale == ScaleOf::kVectors ? blocks * strides.along_k
                                    : (rows + kFloat8Block - 1) / kFloat8Block * strides.along_rows;
}
int64_t ExtentOfC(const ProductSpec& s) { return Extent(s.m, s.n, s.row_c); }

}  // namespace

const std::vector<std::byte>& SampleValues::Pattern(DType dtype) {
  std::vector<std::byte>& pattern = dtype == DType::kU8     ? float8_
                                    : dtype == DType::kBF16 ? bf16_
                                    : dtype == DType::kF16  ? f16_
                                                            : f32_;
  if (pattern.empty()) {
    const std::vector<float> values = Normal();
    pattern.resize(kDrawn * SizeOf(dtype));
    if (dtype == DType::kU8) {
      // Numbers of e5m2, too, and finite there.
      constexpr Float8Format kFormat = FormatOf(Float8::kE4M3);
      for (size_t i = 0; i < kDrawn; ++i)
        pattern[i] = static_cast<std::byte>(Float8Bits(RoundToFloat8(values[i] * 64, kFormat), kFormat));
      return pattern;
    }
    ConvertElements(DType::kF32, reinterpret_cast<const std::byte*>(values.data()), dtype, pattern.data(),
                    kDrawn);
  }
  return pattern;
}

absl::Status SampleValues::Fill(const void* data, int64_t elements, DType dtype, StreamHandle stream) {
  if (data == nullptr || elements <= 0) return absl::OkStatus();
  // Products read through pointers to const what the arena lets anybody write.
  auto* const begin = static_cast<std::byte*>(const_cast<void*>(data));
  const std::vector<std::byte>& pattern = Pattern(dtype);
  const uint64_t bytes = static_cast<uint64_t>(elements) * SizeOf(dtype);
  uint64_t there = std::min<uint64_t>(pattern.size(), bytes);
  FT_RETURN_IF_ERROR(driver_.Copy(begin, pattern.data(), there));
  while (there < bytes) {
    const uint64_t more = std::min(there, bytes - there);
    FT_RETURN_IF_ERROR(driver_.CopyAsync(begin + there, begin, more, stream));
    there += more;
  }
  return absl::OkStatus();
}

absl::Status SampleValues::Write(const ProductSpec& spec, const ProductOperands& operands,
                                 StreamHandle stream) {
  FT_RETURN_IF_ERROR(Fill(operands.a, ExtentOfA(spec), ElementsOf(spec), stream));
  FT_RETURN_IF_ERROR(Fill(operands.b, ExtentOfB(spec), ElementsOf(spec), stream));
  if (spec.float8) {
    const int64_t of_a = ScalesOf(spec.float8->scale_a, spec.m, spec.k);
    const int64_t of_b = ScalesOf(spec.float8->scale_b, spec.n, spec.k);
    FT_RETURN_IF_ERROR(Fill(operands.scale_a, of_a, DType::kF32, stream));
    FT_RETURN_IF_ERROR(Fill(operands.scale_b, of_b, DType::kF32, stream));
  }
  if (spec.accumulate) FT_RETURN_IF_ERROR(Fill(operands.c, ExtentOfC(spec), spec.output, stream));
  if (spec.bias) FT_RETURN_IF_ERROR(Fill(operands.bias, spec.n, spec.input, stream));
  if (!spec.auxiliary) return absl::OkStatus();
  return Fill(operands.auxiliary, ExtentOfC(spec), spec.output, stream);
}

absl::Status SampleValues::Clear(const ProductSpec& spec, const ProductOperands& operands,
                                 uint64_t workspace_bytes, StreamHandle stream) {
  FT_RETURN_IF_ERROR(driver_.Synchronize(stream));
  const auto clear = [this](const void* data, int64_t elements, DType dtype) {
    if (data == nullptr || elements <= 0) return absl::OkStatus();
    return driver_.Zero(const_cast<void*>(data), static_cast<uint64_t>(elements) * SizeOf(dtype));
  };
  FT_RETURN_IF_ERROR(clear(operands.a, ExtentOfA(spec), ElementsOf(spec)));
  FT_RETURN_IF_ERROR(clear(operands.b, ExtentOfB(spec), ElementsOf(spec)));
  if (spec.float8) {
    FT_RETURN_IF_ERROR(clear(operands.scale_a, ScalesOf(spec.float8->scale_a, spec.m, spec.k), DType::kF32));
    FT_RETURN_IF_ERROR(clear(operands.scale_b, ScalesOf(spec.float8->scale_b, spec.n, spec.k), DType::kF32));
  }
  FT_RETURN_IF_ERROR(clear(operands.c, ExtentOfC(spec), spec.output));
  if (spec.bias) FT_RETURN_IF_ERROR(clear(operands.bias, spec.n, spec.input));
  if (spec.auxiliary) FT_RETURN_IF_ERROR(clear(operands.auxiliary, ExtentOfC(spec), spec.output));
  if (MakesSums(spec.epilogue)) {
    const int64_t sums = spec.epilogue == Epilogue::kSumsOfA ? spec.m : spec.n;
    FT_RETURN_IF_ERROR(clear(operands.sums, sums, spec.output));
  }
  return clear(operands.workspace, static_cast<int64_t>(workspace_bytes), DType::kU8);
}

}  // namespace ft::cuda
