// Products of bf16 with VDPBF16PS and TDPBF16PS, bit by bit against the instructions' definitions: emulated
// everywhere, native where the machine has AVX512_BF16 and AMX.
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <random>
#include <vector>

#include "runtime/backends/cpu/gemm.h"
#include "runtime/backends/cpu/testing/emulated_bf16.h"
#include "runtime/backends/cpu/thread_scratch.h"
#include "runtime/kernels/matmul/cpu_loops.h"

namespace ft::cpu {
namespace {

// Denormal numbers count as zero.
float Flush(float x) { return std::abs(x) < 0x1p-126f ? std::copysign(0.0f, x) : x; }

float FromBf16(uint32_t bits) { return std::bit_cast<float>(bits << 16); }

uint32_t ToBf16(float x) {
  const uint32_t bits = std::bit_cast<uint32_t>(Flush(x));
  return (bits + 0x7FFFu + (bits >> 16 & 1u)) >> 16;
}

// a[k] and b[k] of one element of C, which is an even number of both.
using Numbers = std::vector<uint32_t>;
using Dot = float (*)(float sum, const Numbers& a, const Numbers& b);

float Step(float sum, uint32_t a, uint32_t b) {
  return Flush(std::fma(Flush(FromBf16(a)), Flush(FromBf16(b)), Flush(sum)));
}

// VDPBF16PS, pair after pair: the odd element first.
float PairByPair(float sum, const Numbers& a, const Numbers& b) {
  for (size_t k = 0; k < a.size(); k += 2) sum = Step(Step(sum, a[k + 1], b[k + 1]), a[k], b[k]);
  return sum;
}

// TDPBF16PS, 32 elements after 32: even and odd ones apart, each from zero.
float TileByTile(float sum, const Numbers& a, const Numbers& b) {
  for (size_t begin = 0; begin < a.size(); begin += 32) {
    float even = 0, odd = 0;
    for (size_t k = begin; k < std::min(a.size(), begin + 32); k += 2) {
      even = Step(even, a[k], b[k]);
      odd = Step(odd, a[k + 1], b[k + 1]);
    }
    sum = Flush(Flush(sum) + Flush(even + odd));
  }
  return sum;
}

// A matrix of bf16, or of f32 that the product rounds to it.
struct Matrix {
  Matrix(int64_t rows, int64_t columns, DType type, std::mt19937& random)
      : columns(columns), type(type), wide(rows * columns), narrow(rows * columns) {
    std::uniform_real_distribution<float> number(-1.0f, 1.0f);
    for (size_t i = 0; i < wide.size(); ++i) {
      // Among them numbers whose products are denormal.
      wide[i] = number(random) * (random() % 16 == 0 ? 0x1p-66f : 1.0f);
      narrow[i] = static_cast<uint16_t>(ToBf16(wide[i]));
    }
  }

  const void* data() const {
    return type == DType::kF32 ? static_cast<const void*>(wide.data()) : narrow.data();
  }
  uint32_t At(int64_t row, int64_t column, bool transposed) const {
    return narrow[transposed ? column * columns + row : row * columns + column];
  }

  int64_t columns;
  DType type;
  std::vector<float> wide;
  std::vector<uint16_t> narrow;
};

struct Types {
  DType a, b, c;
};

// C as the definition has it.
std::vector<float> Expected(Dot dot, const GemmShape& s, const Matrix& a, const Matrix& b,
                            const std::vector<float>& bias, const std::vector<float>& c) {
  std::vector<float> result(c.size());
  for (int64_t i = 0; i < s.m; ++i) {
    for (int64_t j = 0; j < s.n; ++j) {
      Numbers left(static_cast<size_t>(s.k + 1) / 2 * 2), right(left.size());
      for (int64_t k = 0; k < s.k; ++k) {
        left[k] = a.At(i, k, s.transpose_a);
        right[k] = b.At(k, j, s.transpose_b);
      }
      const float sum = dot(s.accumulate ? c[i * s.n + j] : bias[j], left, right);
      result[i * s.n + j] = s.accumulate ? sum + bias[j] : sum;
    }
  }
  return result;
}

void CheckProduct(const Loops& loops, Dot dot, const GemmShape& s, const Types& types, std::mt19937& random) {
  const Matrix a(s.transpose_a ? s.k : s.m, s.transpose_a ? s.m : s.k, types.a, random);
  const Matrix b(s.transpose_b ? s.n : s.k, s.transpose_b ? s.k : s.n, types.b, random);
  const Matrix bias(1, s.n, DType::kF32, random);
  Matrix c(s.m, s.n, types.c, random);
  std::vector<float> earlier = c.wide;
  for (size_t i = 0; i < earlier.size() && types.c == DType::kBF16; ++i) earlier[i] = FromBf16(c.narrow[i]);
  const std::vector<float> expected = Expected(dot, s, a, b, bias.wide, earlier);
  std::memset(ThreadScratch(), 0xFF, kScratchBytes);  // NaN, whatever reads it
  Gemm(loops, s, {a.data(), a.type}, {b.data(), b.type}, bias.wide.data(),
       {const_cast<void*>(c.data()), c.type}, 1);
  for (size_t i = 0; i < expected.size(); ++i) {
    if (types.c == DType::kF32) {
      ASSERT_EQ(std::bit_cast<uint32_t>(c.wide[i]), std::bit_cast<uint32_t>(expected[i])) << i;
    } else {
      ASSERT_EQ(c.narrow[i], (std::bit_cast<uint32_t>(expected[i]) + 0x7FFFu +
                              (std::bit_cast<uint32_t>(expected[i]) >> 16 & 1u)) >>
                                 16)
          << i;
    }
  }
}

void CheckProducts(const Loops& loops, Dot dot) {
  constexpr DType kF32 = DType::kF32, kBF16 = DType::kBF16;
  std::mt19937 random(7);
  // Edges of tiles, an odd number of elements to sum, several blocks of them, several panels and rows of
  // blocks.
  constexpr int64_t kSizes[][3] = {{1, 1, 1},     {14, 32, 64},  {15, 33, 65},  {29, 70, 31}, {8, 16, 515},
                                   {3, 40, 1030}, {470, 35, 17}, {30, 800, 18}, {64, 64, 96}};
  for (const auto& [m, n, k] : kSizes) {
    for (int variant = 0; variant < 8; ++variant) {
      const GemmShape shape = {m, n, k, (variant & 1) != 0, (variant & 2) != 0, (variant & 4) != 0};
      for (const Types& types :
           {Types{kBF16, kBF16, kF32}, {kBF16, kBF16, kBF16}, {kF32, kBF16, kF32}, {kBF16, kF32, kF32}}) {
        SCOPED_TRACE(testing::Message() << m << " " << n << " " << k << " variant " << variant << " types "
                                        << static_cast<int>(types.a) << static_cast<int>(types.c));
        CheckProduct(loops, dot, shape, types, random);
        if (testing::Test::HasFatalFailure()) return;
      }
    }
  }
}

TEST(Bf16Products, EmulatedHaveTheBitsOfTheInstructions) {
  if (BestIsa() < Isa::kX86V3) GTEST_SKIP() << "skipped: no AVX2";
  CheckProducts(EmulatedBf16Loops(), PairByPair);
  CheckProducts(EmulatedAmxLoops(), TileByTile);
}

TEST(Bf16Products, PairsHaveTheBitsOfTheInstruction) {
  if (BestIsa() < Isa::kX86V4Bf16) GTEST_SKIP() << "skipped: no AVX512_BF16";
  CheckProducts(LoopsFor(Isa::kX86V4Bf16), PairByPair);
}

TEST(Bf16Products, TilesHaveTheBitsOfTheInstruction) {
  if (BestIsa() < Isa::kX86V4Amx) GTEST_SKIP() << "skipped: no AMX";
  CheckProducts(LoopsFor(Isa::kX86V4Amx), TileByTile);
}

// The sums of every instruction set are those of one chain per element, so cuts do not show. Large enough
// that all threads get a part.
TEST(Bf16Products, ThreadsDoNotShow) {
  if (BestIsa() < Isa::kX86V3) GTEST_SKIP() << "skipped: no AVX2";
  constexpr int64_t kM = 130, kN = 170, kK = 300;
  std::mt19937 random(9);
  for (int variant = 0; variant < 8; ++variant) {
    const GemmShape shape = {kM, kN, kK, (variant & 1) != 0, (variant & 2) != 0, (variant & 4) != 0};
    const Matrix a(shape.transpose_a ? kK : kM, shape.transpose_a ? kM : kK, DType::kBF16, random);
    const Matrix b(shape.transpose_b ? kN : kK, shape.transpose_b ? kK : kN, DType::kBF16, random);
    const Matrix bias(1, kN, DType::kF32, random), before(kM, kN, DType::kBF16, random);
    for (const Loops* loops : {&LoopsFor(BestIsa()), &EmulatedBf16Loops(), &EmulatedAmxLoops()}) {
      std::vector<uint16_t> first;
      for (int threads : {1, 2, 3, 7}) {
        std::vector<uint16_t> c = before.narrow;
        Gemm(*loops, shape, {a.data(), a.type}, {b.data(), b.type}, bias.wide.data(),
             {c.data(), DType::kBF16}, threads);
        if (threads == 1) first = c;
        EXPECT_EQ(c, first) << "variant " << variant << ", threads " << threads;
      }
    }
  }
}

}  // namespace
}  // namespace ft::cpu
