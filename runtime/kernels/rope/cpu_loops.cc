#include "runtime/kernels/rope/cpu_loops.h"

#include "runtime/backends/cpu/simd/element.h"
#include "runtime/backends/cpu/simd/f16_pieces.h"

namespace ft::cpu::FT_ISA {
namespace {

template <typename T>
FT_INLINE void RopeRows(const RopeArgs& args, int64_t begin, int64_t end) {
  const int64_t half = args.half;
  for (int64_t row = begin; row < end; ++row) {
    const float* cosine = args.cosine + row % args.positions * half;
    const float* sine = args.sine + row % args.positions * half;
    for (int64_t head = 0; head < args.heads; ++head) {
      const int64_t at = (row * args.heads + head) * 2 * half;
      const T* x = static_cast<const T*>(args.x) + at;
      T* r = static_cast<T*>(args.r) + at;
#pragma omp simd
      for (int64_t i = 0; i < half; ++i) {
        const float low = Load(x[i]), high = Load(x[i + half]);
        Store(Fma(low, cosine[i], -(high * sine[i])), r[i]);
        Store(Fma(high, cosine[i], low * sine[i]), r[i + half]);
      }
    }
  }
}

template <typename T>
void Rope(const RopeArgs& args, int64_t begin, int64_t end) {
  RopeRows<T>(args, begin, end);
}

// A head at a time.
template <>
void Rope<Float16>(const RopeArgs& args, int64_t begin, int64_t end) {
  const int64_t half = args.half, width = 2 * half;
  if (width > kPiece) return RopeRows<Float16>(args, begin, end);
  Piece x, r;
  for (int64_t row = begin; row < end; ++row) {
    const int64_t angle = row % args.positions * half;
    for (int64_t head = 0; head < args.heads; ++head) {
      const int64_t at = (row * args.heads + head) * width;
      RopeRows<float>(
          {x.Read(args.x, at, width), r.data(), args.cosine + angle, args.sine + angle, 1, 1, half}, 0, 1);
      r.Write(args.r, at, width);
    }
  }
}

}  // namespace

extern const RopeLoops kRope;
const RopeLoops kRope = {{Rope<float>, Rope<BFloat16>, Rope<Float16>}};

}  // namespace ft::cpu::FT_ISA
