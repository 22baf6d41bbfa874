#include "test/conformance/array.h"

#include "runtime/base/philox.h"

namespace ft::conformance {

int64_t Elements(const std::vector<int64_t>& dims) {
  int64_t n = 1;
  for (int64_t d : dims) n *= d;
  return n;
}

namespace {

double Uniform(uint64_t seed, int64_t i) { return PhiloxUniform(Philox4x32(seed, 77, 0, i / 4)[i % 4]); }

}  // namespace

Array Random(std::vector<int64_t> dims, uint64_t seed, double range) {
  Array array{std::move(dims), {}};
  const int64_t n = Elements(array.dims);
  for (int64_t i = 0; i < n; ++i) {
    array.values.push_back(static_cast<float>((2.0 * Uniform(seed, i) - 1.0) * range));
  }
  return array;
}

Array RandomIds(std::vector<int64_t> dims, int64_t limit, uint64_t seed) {
  Array array{std::move(dims), {}, DType::kI32};
  const int64_t n = Elements(array.dims);
  for (int64_t i = 0; i < n; ++i) array.values.push_back(static_cast<int64_t>(Uniform(seed, i) * limit));
  return array;
}

Array Scalar(double value) { return {{}, {value}}; }

Array Constant(std::vector<int64_t> dims, double value) {
  const int64_t n = Elements(dims);
  return {std::move(dims), std::vector<double>(n, value)};
}

Array Absent() { return {{}, {}, DType::kF32, false}; }

}  // namespace ft::conformance
