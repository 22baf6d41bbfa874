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

void Fill(float* x, float value, int64_t begin, int64_t end) {
#pragma omp simd
  for (int64_t i = begin; i < end; ++i) x[i] = value;
}

}  // namespace

extern const ConvertLoops kConvert;
const ConvertLoops kConvert = {FT_EVERY_FLOAT(ToFloat), FT_EVERY_FLOAT(FromFloat), Fill};

}  // namespace ft::cpu::FT_ISA
