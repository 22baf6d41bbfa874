// Values of a conformance case, in f64 whatever the type of the tensor they stand for.
#pragma once

#include <cstdint>
#include <vector>

#include "runtime/base/dtype.h"

namespace ft::conformance {

struct Array {
  std::vector<int64_t> dims;
  std::vector<double> values;
  DType dtype = DType::kF32;
  bool present = true;

  int64_t last() const { return dims.empty() ? 1 : dims.back(); }
  int64_t size() const { return static_cast<int64_t>(values.size()); }
  int64_t rows() const { return size() / last(); }
};

// What kernels compute on.
inline constexpr DType kFloats[] = {DType::kF32, DType::kBF16, DType::kF16};

int64_t Elements(const std::vector<int64_t>& dims);

// Uniform in [-range, range], rounded to f32 so that kernel and reference see the same numbers.
Array Random(std::vector<int64_t> dims, uint64_t seed, double range = 2.0);
// As std::ilogb and std::ldexp(1, exponent), which take most of the time of a test where they are called for
// every element.
int ExponentOf(double value);
double PowerOfTwo(int exponent);
// The nearest number of a float type, ties to even; infinite beyond the largest.
double RoundTo(double value, DType dtype);
// The most that one rounding of a number of at most this magnitude to a 16-bit type changes: half a unit of
// its last place (case.h). 0 for other types.
double Rounding(DType dtype, double magnitude);
// The same numbers as a tensor of this float type, each rounded to it.
Array As(Array array, DType dtype);
// Uniform integers in [0, limit), i32.
Array RandomIds(std::vector<int64_t> dims, int64_t limit, uint64_t seed);
// The same values as elements of another type, which has them.
Array Typed(Array array, DType dtype);
// Random numbers of any type: floats in [-range, range], integers from -100 to 99, truth values.
Array Numbers(const std::vector<int64_t>& dims, uint64_t seed, DType dtype, double range = 4.0);
Array Scalar(double value);
Array Constant(std::vector<int64_t> dims, double value);
// An optional operand that is not given.
Array Absent();

}  // namespace ft::conformance
