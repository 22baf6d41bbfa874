#include "runtime/backends/cpu/routines/convert.h"

#include "runtime/backends/cpu/routines/half.h"

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

// An exponent of ones.
template <typename T>
bool AllFinite(const void* x, int64_t begin, int64_t n) {
  const T* from = static_cast<const T*>(x) + begin;
  uint32_t largest = 0;
#pragma omp simd reduction(max : largest)
  for (int64_t i = 0; i < n; ++i) {
    const uint32_t magnitude = std::bit_cast<uint32_t>(Load(from[i])) & 0x7FFFFFFFu;
    largest = magnitude > largest ? magnitude : largest;
  }
  return largest < 0x7F800000u;
}

}  // namespace

extern const ConvertRoutines kConvert;
const ConvertRoutines kConvert = {FT_EVERY_FLOAT(ToFloat), FT_EVERY_FLOAT(FromFloat),
                                  FT_EVERY_FLOAT(AllFinite)};

}  // namespace ft::cpu::FT_ISA
