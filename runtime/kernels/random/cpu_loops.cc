#include "runtime/kernels/random/cpu_loops.h"

#include "runtime/backends/cpu/simd/element.h"
#include "runtime/backends/cpu/simd/philox.h"

namespace ft::cpu::FT_ISA {
namespace {

constexpr int kBlocks = 64;  // Philox blocks drawn together

// Box-Muller on a pair of words.
FT_INLINE void NormalPair(uint32_t w0, uint32_t w1, float stddev, float& z0, float& z1) {
  // Halves are exact in f32, so their sum is the word rounded once; then + 1 and the scaling.
  const float high = static_cast<float>(static_cast<int32_t>(w0 >> 16)) * 65536.0f;
  const float low = static_cast<float>(static_cast<int32_t>(w0 & 0xFFFFu));
  const float u = (high + low + 1.0f) * 0x1p-32f;
  const float radius = stddev * __builtin_sqrtf(-2.0f * Log(u));
  // The angle in quarter turns: the nearest whole number of them, and the rest in [-1/2, 1/2) from the lower
  // bits.
  const uint32_t shifted = w1 + 0x20000000u;
  const int32_t quarter = static_cast<int32_t>(shifted >> 30);
  const float rest = static_cast<float>(static_cast<int32_t>(shifted & 0x3FFFFFFFu) - 0x20000000) * 0x1p-30f;
  const float angle = rest * 1.5707963267948966f;
  const float s = SinReduced(angle), c = CosReduced(angle);
  const float cosine = (quarter & 1) != 0 ? s : c;
  const float sine = (quarter & 1) != 0 ? c : s;
  z0 = radius * ((quarter == 1 || quarter == 2) ? -cosine : cosine);
  z1 = radius * (quarter >= 2 ? -sine : sine);
}

void Normal(const DrawArgs& args, float* result, int64_t element_begin, int64_t n) {
  uint32_t words[4][kBlocks];
  float z[4][kBlocks];
  for (int64_t done = 0; done < n; done += 4 * kBlocks) {
    PhiloxBlocks(args, static_cast<uint64_t>(element_begin + done) / 4, words);
#pragma omp simd
    for (int i = 0; i < kBlocks; ++i) {
      float z0, z1, z2, z3;
      NormalPair(words[0][i], words[1][i], args.scale, z0, z1);
      NormalPair(words[2][i], words[3][i], args.scale, z2, z3);
      z[0][i] = z0;
      z[1][i] = z1;
      z[2][i] = z2;
      z[3][i] = z3;
    }
    float* to = result + done;
    if (n - done >= 4 * kBlocks) {
      for (int i = 0; i < 4 * kBlocks; ++i) to[i] = z[i % 4][i / 4];
    } else {
      for (int64_t i = 0; i < n - done; ++i) to[i] = z[i % 4][i / 4];
    }
  }
}

void Uniform(const DrawArgs& args, float* result, int64_t element_begin, int64_t n) {
  uint32_t words[4][kBlocks];
  for (int64_t done = 0; done < n; done += 4 * kBlocks) {
    PhiloxBlocks(args, static_cast<uint64_t>(element_begin + done) / 4, words);
    const int64_t count = n - done < 4 * kBlocks ? n - done : 4 * kBlocks;
    float* to = result + done;
    for (int64_t i = 0; i < count; ++i) {
      const int32_t upper = static_cast<int32_t>(words[i % 4][i / 4] >> 8);
      to[i] = args.scale * (static_cast<float>(upper) * 0x1p-23f - 1.0f);  // exact but for the last product
    }
  }
}

void RoundBF16(const RoundingArgs& args, const float* x, uint16_t* r, int64_t element_begin, int64_t n) {
  uint32_t words[4][kBlocks], drawn[4 * kBlocks];
  for (int64_t done = 0; done < n; done += 4 * kBlocks) {
    PhiloxBlocks(args, static_cast<uint64_t>(element_begin + done) / 4, words);
    for (int i = 0; i < 4 * kBlocks; ++i) drawn[i] = words[i % 4][i / 4];
    const int64_t count = n - done < 4 * kBlocks ? n - done : 4 * kBlocks;
    const float* from = x + done;
    uint16_t* to = r + done;
#pragma omp simd
    for (int64_t i = 0; i < count; ++i) {
      const uint32_t bits = __builtin_bit_cast(uint32_t, from[i]);
      const uint32_t magnitude = bits & 0x7FFFFFFFu;
      const uint32_t moved = bits + (magnitude < 0x7F800000u ? drawn[i] >> 16 : 0u);
      const uint32_t quiet = magnitude > 0x7F800000u ? 0x00400000u : 0u;
      to[i] = static_cast<uint16_t>((moved | quiet) >> 16);
    }
  }
}

}  // namespace

extern const RandomLoops kRandom;
const RandomLoops kRandom = {Normal, Uniform, RoundBF16};

}  // namespace ft::cpu::FT_ISA
