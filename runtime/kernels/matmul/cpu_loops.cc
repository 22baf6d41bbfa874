#include "runtime/kernels/matmul/cpu_loops.h"

#include "runtime/kernels/matmul/cpu_packed_product.h"
#if FT_AMX
#include "runtime/kernels/matmul/cpu_amx_product.h"
#endif

namespace ft::cpu::FT_ISA {
namespace {

// Tiles of 1 to kTileRows rows.
#define FT_TILES_TO_4(Units) nullptr, Tile<Units, 1>, Tile<Units, 2>, Tile<Units, 3>, Tile<Units, 4>
#define FT_TILES_TO_6(Units) FT_TILES_TO_4(Units), Tile<Units, 5>, Tile<Units, 6>
#define FT_TILES_TO_14(Units)                                                                             \
  FT_TILES_TO_6(Units), Tile<Units, 7>, Tile<Units, 8>, Tile<Units, 9>, Tile<Units, 10>, Tile<Units, 11>, \
      Tile<Units, 12>, Tile<Units, 13>, Tile<Units, 14>
#if defined(__AVX512F__) || defined(FT_EMULATE_BF16_DOT)
#define FT_TILES FT_TILES_TO_14
#elif defined(__AVX2__)
#define FT_TILES FT_TILES_TO_6
#else
#define FT_TILES FT_TILES_TO_4
#endif

template <>
struct Functions<F32Units> {
  static constexpr PackFunction kPackRows[] = {PackRows<F32Units, float>, PackRows<F32Units, BFloat16>,
                                               PackRows<F32Units, Float16>};
  static constexpr PackFunction kPackColumns[] = {
      PackColumns<F32Units, float>, PackColumns<F32Units, BFloat16>, PackColumns<F32Units, Float16>};
  static TileFunction TileOf(int64_t rows) {
    static constexpr TileFunction kTiles[kTileRows + 1] = {FT_TILES(F32Units)};
    return kTiles[rows];
  }
};

#if FT_BF16_DOT && !FT_AMX
template <>
struct Functions<Bf16Units> {
  static constexpr PackFunction kPackRows[] = {PackRows<Bf16Units, float>, PackRows<Bf16Units, BFloat16>};
  static constexpr PackFunction kPackColumns[] = {PackColumns<Bf16Units, float>,
                                                  PackColumns<Bf16Units, BFloat16>};
  static TileFunction TileOf(int64_t rows) {
    static constexpr TileFunction kTiles[kTileRows + 1] = {FT_TILES(Bf16Units)};
    return kTiles[rows];
  }
};
#endif

void AddBias(float* c, int64_t ldc, const float* bias, int64_t m, int64_t n) {
  for (int64_t i = 0; i < m; ++i) {
#pragma omp simd
    for (int64_t j = 0; j < n; ++j) c[i * ldc + j] += bias[j];
  }
}

// Enough sums to hide the latency of an instruction.
constexpr int kPeakSums = kLanes == 16 ? 24 : (kLanes == 8 ? 12 : 8);

// A value of which the compiler knows nothing, in memory once.
float Unknown(float x) {
  volatile float value = x;
  return value;
}

template <typename Units>
double Peak(int64_t iterations) {
  // Equal sums would be made once, and a product of constants while compiling.
  Vector sums[kPeakSums];
  for (Vector& sum : sums) sum = Broadcast(Unknown(0.0f));
  const Vector a = Broadcast(Unknown(0.999f)), b = Broadcast(Unknown(1e-3f));
  for (int64_t k = 0; k < iterations; ++k) {
#pragma GCC unroll 24
    for (int i = 0; i < kPeakSums; ++i) sums[i] = Units::MultiplyAdd(a, b, sums[i]);
  }
  float total = 0.0f;
  for (const Vector& sum : sums) total += sum[0];
  const double operations = 2.0 * kPeakSums * kLanes * Units::kElements * static_cast<double>(iterations);
  return total < 0.0f ? 0.0 : operations;  // so that the sums are made
}

// How products of bf16 are made where they are not made in f32.
#if FT_AMX
constexpr auto kBf16Product = AmxProduct;
constexpr auto kBf16Peak = AmxPeak;
constexpr int64_t kBf16Rows = AmxUnits::kRows;
#elif FT_BF16_DOT
constexpr auto kBf16Product = PackedProduct<Bf16Units>;
constexpr auto kBf16Peak = Peak<Bf16Units>;
constexpr int64_t kBf16Rows = Bf16Units::kRows;
#else
constexpr auto kBf16Product = PackedProduct<F32Units>;
constexpr double (*kBf16Peak)(int64_t) = nullptr;
constexpr int64_t kBf16Rows = F32Units::kRows;
#endif

void Product(const GemmPart& p) {
  IsBf16Product(p.a_type, p.b_type) ? kBf16Product(p) : PackedProduct<F32Units>(p);
}

}  // namespace

extern const GemmLoops kGemm;
const GemmLoops kGemm = {AddBias,  Product,     F32Units::kRows, kBf16Rows,
                         kColumns, kLanes == 4, Peak<F32Units>,  kBf16Peak};

}  // namespace ft::cpu::FT_ISA
