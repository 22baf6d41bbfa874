#include "runtime/kernels/cast/cpu_loops.h"

#include "runtime/backends/cpu/simd/half.h"

namespace ft::cpu::FT_ISA {
namespace {

template <typename T>
void ToFloat(const void* x, int64_t begin, int64_t n, float* result) {
  LoadFloats(static_cast<const T*>(x) + begin, n, result);
}

template <typename T>
void FromFloat(const float* x, void* result, int64_t begin, int64_t n) {
  StoreFloats(x, n, static_cast<T*>(result) + begin);
}

// The bits of a number but its sign, and of infinity: larger ones are NaN.
FT_INLINE uint32_t Magnitude(float x) { return std::bit_cast<uint32_t>(x) & 0x7FFFFFFFu; }
FT_INLINE uint16_t Magnitude(BFloat16 x) { return x.bits & 0x7FFFu; }
FT_INLINE uint16_t Magnitude(Float16 x) { return x.bits & 0x7FFFu; }
template <typename T>
constexpr uint32_t kInfinity = 0x7F800000u;
template <>
constexpr uint32_t kInfinity<BFloat16> = 0x7F80u;
template <>
constexpr uint32_t kInfinity<Float16> = 0x7C00u;

template <typename T>
bool AllFinite(const void* x, int64_t begin, int64_t n) {
  const T* from = static_cast<const T*>(x) + begin;
  decltype(Magnitude(*from)) largest = 0;
#pragma omp simd reduction(max : largest)
  for (int64_t i = 0; i < n; ++i) largest = Magnitude(from[i]) > largest ? Magnitude(from[i]) : largest;
  return largest < kInfinity<T>;
}

void Fill(float* x, float value, int64_t begin, int64_t end) {
#pragma omp simd
  for (int64_t i = begin; i < end; ++i) x[i] = value;
}

}  // namespace

extern const ConvertLoops kConvert;
const ConvertLoops kConvert = {FT_EVERY_FLOAT(ToFloat), FT_EVERY_FLOAT(FromFloat), FT_EVERY_FLOAT(AllFinite),
                               Fill};

}  // namespace ft::cpu::FT_ISA
