// 16-bit types on every instruction set: all values, all roundings, the same bits.
#include "runtime/kernels/cast/cpu_loops.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <random>
#include <vector>

#include "runtime/backends/cpu/isa.h"

namespace ft::cpu {
namespace {

struct Format {
  DType dtype;
  int mantissa;  // bits
  int bias;      // of the exponent
  uint16_t infinity;
};
constexpr Format kFormats[] = {{DType::kBF16, 7, 127, 0x7F80}, {DType::kF16, 10, 15, 0x7C00}};

// The definition: sign, exponent, mantissa.
double Value(const Format& format, uint16_t bits) {
  const int exponent = (bits & 0x7FFF) >> format.mantissa;
  const int fraction = bits & ((1 << format.mantissa) - 1);
  double value =
      exponent == 0 ? std::ldexp(fraction, 1 - format.bias - format.mantissa)
                    : std::ldexp(fraction + (1 << format.mantissa), exponent - format.bias - format.mantissa);
  if ((bits & 0x7FFF) == format.infinity) value = INFINITY;
  if ((bits & 0x7FFF) > format.infinity) value = NAN;
  return bits & 0x8000 ? -value : value;
}

// The nearest of all finite values, by bisection; of two, the one with an even mantissa; infinity from half a
// unit beyond the largest on.
uint16_t Nearest(const Format& format, float x) {
  const uint16_t sign = std::signbit(x) ? 0x8000 : 0;
  const double magnitude = std::abs(double{x});
  uint16_t low = 0, high = format.infinity;
  auto value = [&](uint16_t bits) {
    if (bits < format.infinity) return Value(format, bits);
    return 2 * Value(format, format.infinity - 1) - Value(format, format.infinity - 2);
  };
  while (high - low > 1) {
    const uint16_t middle = (low + high) / 2;
    (value(middle) <= magnitude ? low : high) = middle;
  }
  const double below = magnitude - value(low), above = value(high) - magnitude;
  const bool up = above < below || (above == below && low % 2 == 1);
  return sign | (up ? high : low);
}

std::vector<float> ToFloats(const Loops& loops, DType dtype, const std::vector<uint16_t>& bits,
                            int64_t piece) {
  std::vector<float> result(bits.size());
  const int64_t n = static_cast<int64_t>(bits.size());
  for (int64_t i = 0; i < n; i += piece) {
    loops.convert.to_float[FloatIndex(dtype)](bits.data(), i, std::min(piece, n - i), result.data() + i);
  }
  return result;
}

std::vector<uint16_t> FromFloats(const Loops& loops, DType dtype, const std::vector<float>& values,
                                 int64_t piece) {
  std::vector<uint16_t> result(values.size());
  const int64_t n = static_cast<int64_t>(values.size());
  for (int64_t i = 0; i < n; i += piece) {
    loops.convert.from_float[FloatIndex(dtype)](values.data() + i, result.data(), i, std::min(piece, n - i));
  }
  return result;
}

// Lengths of the pieces that are converted at once: alone, with and without a rest behind whole vectors.
constexpr int64_t kPieces[] = {1, 5, 8, 16, 21, 65536};

TEST(Convert, EveryValueToFloat) {
  std::vector<uint16_t> bits(65536);
  for (size_t i = 0; i < bits.size(); ++i) bits[i] = static_cast<uint16_t>(i);
  for (const Format& format : kFormats) {
    const std::vector<float> first = ToFloats(LoopsFor(Isa::kGeneric), format.dtype, bits, 1);
    for (size_t i = 0; i < bits.size(); ++i) {
      const double want = Value(format, bits[i]);
      ASSERT_EQ(std::signbit(first[i]), (i & 0x8000) != 0) << i;
      if (std::isnan(want)) {
        ASSERT_TRUE(std::isnan(first[i])) << i;
      } else {
        ASSERT_EQ(first[i], want) << i;
      }
    }
    for (Isa isa : UsableIsas()) {
      for (int64_t piece : kPieces) {
        const std::vector<float> got = ToFloats(LoopsFor(isa), format.dtype, bits, piece);
        for (size_t i = 0; i < bits.size(); ++i) {
          ASSERT_EQ(std::bit_cast<uint32_t>(got[i]), std::bit_cast<uint32_t>(first[i]))
              << Name(isa) << " " << Name(format.dtype) << " " << i << ", pieces of " << piece;
        }
      }
    }
  }
}

// Every value, the middle between it and the next, and the f32 just below and above these; then numbers of
// every exponent.
std::vector<float> Hard(const Format& format) {
  std::vector<float> values;
  for (uint32_t bits = 0; bits < format.infinity; ++bits) {
    const double value = Value(format, static_cast<uint16_t>(bits));
    const double next = bits + 1 < format.infinity
                            ? Value(format, static_cast<uint16_t>(bits + 1))
                            : 2 * value - Value(format, static_cast<uint16_t>(bits - 1));
    for (const float x : {static_cast<float>(value), static_cast<float>((value + next) / 2)}) {
      for (const float y : {x, std::nextafter(x, 0.0f), std::nextafter(x, INFINITY)}) {
        values.push_back(y);
        values.push_back(-y);
      }
    }
  }
  std::mt19937 generator(7);
  for (int i = 0; i < 300000; ++i) {
    const float x = std::bit_cast<float>(static_cast<uint32_t>(generator()));
    if (!std::isnan(x)) values.push_back(x);
  }
  for (const float x : {INFINITY, 65519.996f, 65520.0f, 3.4028235e38f, 1e-45f}) {
    values.push_back(x);
    values.push_back(-x);
  }
  return values;
}

TEST(Convert, RoundsToNearestEven) {
  for (const Format& format : kFormats) {
    const std::vector<float> values = Hard(format);
    const std::vector<uint16_t> first = FromFloats(LoopsFor(Isa::kGeneric), format.dtype, values, 1);
    for (size_t i = 0; i < values.size(); ++i) {
      ASSERT_EQ(first[i], Nearest(format, values[i])) << Name(format.dtype) << " " << values[i];
    }
    for (Isa isa : UsableIsas()) {
      for (int64_t piece : kPieces) {
        if (piece < 8 && isa != Isa::kGeneric && piece != 5) continue;
        ASSERT_EQ(FromFloats(LoopsFor(isa), format.dtype, values, piece), first)
            << Name(isa) << " " << Name(format.dtype) << ", pieces of " << piece;
      }
    }
  }
}

TEST(Convert, NanStaysNan) {
  std::vector<float> values;
  std::mt19937 generator(9);
  for (uint32_t mantissa = 1; mantissa < 0x00800000u; mantissa += 1 + generator() % 200) {
    values.push_back(std::bit_cast<float>(0x7F800000u | mantissa));
    values.push_back(std::bit_cast<float>(0xFF800000u | mantissa));
  }
  for (const Format& format : kFormats) {
    const std::vector<uint16_t> first = FromFloats(LoopsFor(Isa::kGeneric), format.dtype, values, 1);
    for (size_t i = 0; i < values.size(); ++i) {
      ASSERT_GT(first[i] & 0x7FFF, format.infinity) << i;
      ASSERT_EQ((first[i] & 0x8000) != 0, std::signbit(values[i])) << i;
    }
    for (Isa isa : UsableIsas()) {
      for (int64_t piece : kPieces) {
        EXPECT_EQ(FromFloats(LoopsFor(isa), format.dtype, values, piece), first)
            << Name(isa) << " " << Name(format.dtype) << ", pieces of " << piece;
      }
    }
  }
}

}  // namespace
}  // namespace ft::cpu
