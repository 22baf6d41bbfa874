#include "runtime/kernels/accumulate/cpu_loops.h"

#include "runtime/backends/cpu/simd/element.h"
#include "runtime/backends/cpu/simd/f16_pieces.h"

namespace ft::cpu::FT_ISA {
namespace {

template <typename T>
void Accumulate(const AccumulateArgs& args, int64_t begin, int64_t end) {
  const T* x = static_cast<const T*>(args.x);
  T* state = static_cast<T*>(args.state);
#pragma omp simd
  for (int64_t i = begin; i < end; ++i) Store(Load(state[i]) + Load(x[i]), state[i]);
}

template <typename T>
void Accumulated(const AccumulateArgs& args, int64_t begin, int64_t end) {
  const T* x = static_cast<const T*>(args.x);
  T* state = static_cast<T*>(args.state);
  T* y = static_cast<T*>(args.y);
#pragma omp simd
  for (int64_t i = begin; i < end; ++i) {
    Store(Load(state[i]) + Load(x[i]), y[i]);
    Store(0.0f, state[i]);
  }
}

}  // namespace

extern const AccumulateLoops kAccumulate;
const AccumulateLoops kAccumulate = {
    {Accumulate<float>, Accumulate<BFloat16>, AccumulatePieces<Accumulate<float>, false>},
    {Accumulated<float>, Accumulated<BFloat16>, AccumulatePieces<Accumulated<float>, true>}};

}  // namespace ft::cpu::FT_ISA
