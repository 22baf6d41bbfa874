#include "test/conformance/array.h"

#include <bit>
#include <cmath>
#include <limits>

#include "runtime/base/philox.h"

namespace ft::conformance {

int64_t Elements(const std::vector<int64_t>& dims) {
  int64_t n = 1;
  for (int64_t d : dims) n *= d;
  return n;
}

namespace {

// `count` numbers in [0, 1).
std::vector<double> Uniform(uint64_t seed, int64_t count) {
  std::vector<double> numbers;
  numbers.reserve(count + 3);
  for (int64_t block = 0; block * 4 < count; ++block) {
    for (uint32_t word : Philox4x32(seed, 77, 0, block)) numbers.push_back(PhiloxUniform(word));
  }
  numbers.resize(count);
  return numbers;
}

}  // namespace

Array Random(std::vector<int64_t> dims, uint64_t seed, double range) {
  Array array{std::move(dims), {}};
  array.values = Uniform(seed, Elements(array.dims));
  for (double& value : array.values) value = static_cast<float>((2.0 * value - 1.0) * range);
  return array;
}

namespace {

// A binary format: bits of precision (the leading one included), exponents of the smallest normal and of the
// largest.
struct Format {
  int precision, smallest, largest;
};

Format FormatOf(DType dtype) {
  if (dtype == DType::kBF16) return {8, -126, 127};
  if (dtype == DType::kF16) return {11, -14, 15};
  return {24, -126, 127};
}

}  // namespace

int ExponentOf(double value) {
  const auto field = static_cast<int>(std::bit_cast<uint64_t>(value) >> 52 & 0x7FF);
  return field == 0 || field == 0x7FF ? std::ilogb(value) : field - 1023;
}

double PowerOfTwo(int exponent) {
  if (exponent < -1022 || exponent > 1023) return std::ldexp(1.0, exponent);
  return std::bit_cast<double>(static_cast<uint64_t>(exponent + 1023) << 52);
}

double RoundTo(double value, DType dtype) {
  if (value == 0 || !std::isfinite(value)) return value;
  const Format format = FormatOf(dtype);
  const int exponent = std::max(ExponentOf(value), format.smallest);
  const int unit = exponent - (format.precision - 1);
  // In f64's rounding, to nearest even.
  const double rounded = std::nearbyint(value * PowerOfTwo(-unit)) * PowerOfTwo(unit);
  if (std::abs(rounded) < PowerOfTwo(format.largest + 1)) return rounded;
  return std::copysign(std::numeric_limits<double>::infinity(), value);
}

double Rounding(DType dtype, double magnitude) {
  if (dtype != DType::kBF16 && dtype != DType::kF16) return 0;
  const int precision = dtype == DType::kBF16 ? 8 : 11, smallest = dtype == DType::kBF16 ? -126 : -14;
  const int exponent = magnitude == 0 ? smallest : std::max(ExponentOf(magnitude), smallest);
  return PowerOfTwo(exponent - precision);
}

Array As(Array array, DType dtype) {
  array.dtype = dtype;
  for (double& value : array.values) value = RoundTo(value, dtype);
  return array;
}

Array RandomIds(std::vector<int64_t> dims, int64_t limit, uint64_t seed) {
  Array array{std::move(dims), {}, DType::kI32};
  array.values = Uniform(seed, Elements(array.dims));
  for (double& value : array.values) value = std::trunc(value * limit);
  return array;
}

Array Typed(Array array, DType dtype) {
  array.dtype = dtype;
  return array;
}

Array Numbers(const std::vector<int64_t>& dims, uint64_t seed, DType dtype, double range) {
  if (IsFloat(dtype)) return As(Random(dims, seed, range), dtype);
  const bool truth = dtype == DType::kU8;
  Array array = RandomIds(dims, truth ? 2 : 200, seed);
  if (!truth) {
    for (double& value : array.values) value -= 100;
  }
  return Typed(array, dtype);
}

Array Scalar(double value) { return {{}, {value}}; }

Array Constant(std::vector<int64_t> dims, double value) {
  const int64_t n = Elements(dims);
  return {std::move(dims), std::vector<double>(n, value)};
}

Array Absent() { return {{}, {}, DType::kF32, false}; }

}  // namespace ft::conformance
