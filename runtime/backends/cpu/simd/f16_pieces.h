// Loops over f16 by way of f32: the compiler's vectoriser knows no conversion instruction, and integer
// arithmetic for each element (element.h) would make them 3 to 6 times slower than those over f32. A piece of
// each operand is converted at once (half.h), the loop over f32 runs on the copies, and results are rounded
// at the end: the values are the same. Included only by loops.
#pragma once

#include "runtime/backends/cpu/simd/half.h"
#include "runtime/kernels/accumulate/cpu_loops.h"

namespace ft::cpu::FT_ISA {

inline constexpr int64_t kPiece = 512;

// kPiece elements in f32.
class Piece {
 public:
  FT_INLINE const Float16* At(const void* x, int64_t begin) { return static_cast<const Float16*>(x) + begin; }

  inline __attribute__((always_inline)) float* Read(const void* x, int64_t begin, int64_t n) {
    LoadFloats(At(x, begin), n, values_);
    return values_;
  }
  inline __attribute__((always_inline)) void Write(void* x, int64_t begin, int64_t n) const {
    StoreFloats(values_, n, static_cast<Float16*>(x) + begin);
  }
  inline __attribute__((always_inline)) float* data() { return values_; }

 private:
  alignas(64) float values_[kPiece];
};

FT_INLINE int64_t PieceLength(int64_t begin, int64_t end) {
  return end - begin < kPiece ? end - begin : kPiece;
}

template <void (*kLoop)(const AccumulateArgs&, int64_t, int64_t), bool kGivesSum>
void AccumulatePieces(const AccumulateArgs& args, int64_t begin, int64_t end) {
  Piece x, state, y = {};
  for (int64_t i = begin, n; i < end; i += n) {
    n = PieceLength(i, end);
    kLoop({x.Read(args.x, i, n), state.Read(args.state, i, n), y.data()}, 0, n);
    state.Write(args.state, i, n);
    if constexpr (kGivesSum) y.Write(args.y, i, n);
  }
}

}  // namespace ft::cpu::FT_ISA
