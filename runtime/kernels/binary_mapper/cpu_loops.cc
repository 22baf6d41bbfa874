#include "runtime/kernels/binary_mapper/cpu_loops.h"

#include "runtime/backends/cpu/simd/vector_math.h"

namespace ft::cpu::FT_ISA {
namespace {

constexpr int kHalfCodes = 1 << (kBlockBits / 2);

// Probabilities of all codes of `bits` independent bits, bit 0 lowest.
FT_INLINE void Products(const double* probability, int bits, double* products) {
  products[0] = 1.0;
  for (int h = 0; h < bits; ++h) {
    for (int d = (1 << h) - 1; d >= 0; --d) {
      products[d + (1 << h)] = products[d] * probability[h];
      products[d] *= 1.0 - probability[h];
    }
  }
}

// sums[h] += the values of all codes that have bit h; returns the sum of all.
FT_INLINE double SumByBit(const double* values, int bits, double scale, double* sums) {
  double total = 0.0;
  for (int d = 0; d < (1 << bits); ++d) total += values[d];
  for (int h = 0; h < bits; ++h) {
    double with_bit = 0.0;
    for (int d = 0; d < (1 << bits); ++d) with_bit += (d >> h & 1) != 0 ? values[d] : 0.0;
    sums[h] += scale * with_bit;
  }
  return scale * total;
}

// G is the outer product of the upper and the lower half of the bits: two multiply-adds a code.
double CodeBlock(const float* g, const double* probability, int bits, int64_t block, double* sums) {
  const int inner = bits < kBlockBits ? bits : kBlockBits;
  const int low = inner / 2, high = inner - low;
  double low_products[kHalfCodes], high_products[kHalfCodes];
  Products(probability, low, low_products);
  Products(probability + low, high, high_products);
  double scale = 1.0;
  for (int h = inner; h < bits; ++h) {
    scale *= (block >> (h - inner) & 1) != 0 ? probability[h] : 1.0 - probability[h];
  }
  double low_sums[kHalfCodes] = {}, high_sums[kHalfCodes];
  for (int d = 0; d < (1 << high); ++d) {
    const float* row = g + (static_cast<int64_t>(d) << low);
    double dot = 0.0;
#pragma omp simd reduction(+ : dot)
    for (int e = 0; e < (1 << low); ++e) {
      dot += row[e] * low_products[e];
      low_sums[e] += row[e] * high_products[d];
    }
    high_sums[d] = dot * high_products[d];
  }
  for (int e = 0; e < (1 << low); ++e) low_sums[e] *= low_products[e];
  SumByBit(low_sums, low, scale, sums);
  const double total = SumByBit(high_sums, high, scale, sums + low);
  for (int h = inner; h < bits; ++h) {
    if ((block >> (h - inner) & 1) != 0) sums[h] += total;
  }
  return total;
}

}  // namespace

extern const BinaryMapperLoops kBinaryMapper;
const BinaryMapperLoops kBinaryMapper = {CodeBlock};

}  // namespace ft::cpu::FT_ISA
