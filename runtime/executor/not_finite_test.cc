#include "runtime/executor/not_finite.h"

#include <cmath>
#include <limits>
#include <vector>

#include "gtest/gtest.h"

namespace ft {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();

TEST(NotFiniteTest, TellsNanFromInfinitiesInEveryType) {
  // Largest numbers, both infinities, and NaN with the fewest and the most bits, of each sign.
  struct Row {
    DType dtype;
    std::vector<uint64_t> bits;
  };
  const Row rows[] = {
      {DType::kF32, {0, 0x7F7FFFFF, 0xFF7FFFFF, 0x80000000, 0x7F800000, 0xFF800000, 0x7F800001, 0xFFFFFFFF}},
      {DType::kBF16, {0, 0x7F7F, 0xFF7F, 0x8000, 0x7F80, 0xFF80, 0x7F81, 0xFFFF}},
      {DType::kF16, {0, 0x7BFF, 0xFBFF, 0x8000, 0x7C00, 0xFC00, 0x7C01, 0xFFFF}},
      {DType::kF64,
       {0, 0x7FEFFFFFFFFFFFFF, 0xFFEFFFFFFFFFFFFF, 0x8000000000000000, 0x7FF0000000000000, 0xFFF0000000000000,
        0x7FF0000000000001, 0xFFFFFFFFFFFFFFFF}}};
  for (const Row& row : rows) {
    std::vector<char> bytes;
    for (const uint64_t bits : row.bits)
      bytes.insert(bytes.end(), reinterpret_cast<const char*>(&bits),
                   reinterpret_cast<const char*>(&bits) + SizeOf(row.dtype));
    NotFinite numbers;
    CountNotFinite(bytes.data(), row.dtype, 100, 8, numbers);
    EXPECT_EQ(numbers.nan, 2) << Name(row.dtype);
    EXPECT_EQ(numbers.positive, 1) << Name(row.dtype);
    EXPECT_EQ(numbers.negative, 1) << Name(row.dtype);
    EXPECT_EQ(numbers.first, 104) << Name(row.dtype);
    NotFinite finite;
    CountNotFinite(bytes.data(), row.dtype, 0, 4, finite);
    EXPECT_FALSE(finite.any()) << Name(row.dtype);
  }
}

TEST(NotFiniteTest, IntegersHaveNone) {
  const std::vector<int32_t> ones(8, -1);
  NotFinite numbers;
  CountNotFinite(ones.data(), DType::kI32, 0, 8, numbers);
  EXPECT_FALSE(numbers.any());
}

TEST(NotFiniteTest, EveryElementIsLookedAt) {
  for (const int64_t n : {1, 4095, 4096, 4097, 10000}) {
    for (const int64_t place : {int64_t{0}, n / 2, n - 1}) {
      std::vector<float> x(static_cast<size_t>(n), 1.0f);
      x[static_cast<size_t>(place)] = static_cast<float>(-kInf);
      NotFinite numbers;
      CountNotFinite(x.data(), DType::kF32, 0, n, numbers);
      EXPECT_EQ(numbers.first, place) << n;
      EXPECT_EQ(numbers.negative, 1) << n;
      EXPECT_EQ(numbers.nan + numbers.positive, 0) << n;
    }
  }
}

}  // namespace
}  // namespace ft
