// init_normal, init_uniform and init_constant: a parameter's part of what this rank holds of its unit.
#include <algorithm>

#include "runtime/backends/cpu/kernel_base.h"
#include "runtime/backends/cpu/register.h"
#include "runtime/kernels/cast/cpu_loops.h"
#include "runtime/kernels/random/cpu_loops.h"
#include "runtime/kernels/random/operands.h"

namespace ft::cpu {
namespace {

constexpr int64_t kDrawn = 2048;  // elements drawn in f32 before they are rounded

template <auto kLoop>
KernelOr MakeInitDrawn(const KernelContext& context) {
  FT_ASSIGN_OR_RETURN(const InitialValues target, ReadDrawnValues(context.operands, context.attributes));
  const int threads = ThreadsFor(context.num_threads, 16 * (target.end - target.begin));
  return MakeKernel([=, draw = context.loops.random.*kLoop, rng = target.rng,
                     from_float = context.loops.convert.from_float[FloatIndex(target.slice.dtype)]] {
    const DrawArgs args = {static_cast<uint64_t>(rng[0]), target.stream, 0, target.value};
    ParallelRanges(target.end - target.begin, kGrain, threads, [&](int64_t begin, int64_t end) {
      if (target.slice.dtype == DType::kF32) {
        float* data = target.slice.as<float>() + target.begin;
        draw(args, data + begin, target.first + begin, end - begin);
        return;
      }
      float drawn[kDrawn];
      for (int64_t at = begin; at < end; at += kDrawn) {
        const int64_t n = std::min(kDrawn, end - at);
        draw(args, drawn, target.first + at, n);
        from_float(drawn, target.slice.data, target.begin + at, n);
      }
    });
  });
}

KernelOr MakeInitConstant(const KernelContext& context) {
  FT_ASSIGN_OR_RETURN(const InitialValues target, ReadInitialValues(context.operands, context.attributes));
  const int threads = ThreadsFor(context.num_threads, target.end - target.begin);
  uint16_t bits = 0;
  if (target.slice.dtype != DType::kF32)
    context.loops.convert.from_float[FloatIndex(target.slice.dtype)](&target.value, &bits, 0, 1);
  return MakeKernel([=, fill = context.loops.convert.fill] {
    ParallelRanges(target.end - target.begin, kGrain, threads, [&](int64_t begin, int64_t end) {
      if (target.slice.dtype == DType::kF32) {
        fill(target.slice.as<float>() + target.begin, target.value, begin, end);
        return;
      }
      uint16_t* data = target.slice.as<uint16_t>() + target.begin;
      std::fill(data + begin, data + end, bits);
    });
  });
}

}  // namespace

void RegisterInitialize(KernelRegistry& registry, Isa isa) {
  Add<MakeInitDrawn<&RandomLoops::normal>>(registry, "init_normal", isa);
  Add<MakeInitDrawn<&RandomLoops::uniform>>(registry, "init_uniform", isa);
  Add<MakeInitConstant>(registry, "init_constant", isa);
}

}  // namespace ft::cpu
