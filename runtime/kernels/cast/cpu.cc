#include "runtime/backends/cpu/kernel_base.h"
#include "runtime/backends/cpu/register.h"
#include "runtime/kernels/cast/cpu_loops.h"

namespace ft::cpu {
namespace {

// Elements that pass through f32 together, in the first-level cache.
constexpr int64_t kChunk = 1024;

KernelOr MakeCast(const KernelContext& context) {
  FT_RETURN_IF_ERROR(CheckCounts(context.operands, 1, 1));
  const Tensor &x = context.in(0), &r = context.out(0);
  FT_RETURN_IF_ERROR(CheckFloat(x, "x"));
  FT_RETURN_IF_ERROR(CheckFloatSize(r, "result", x.elements()));
  const int threads = ThreadsFor(context.num_threads, x.elements());
  const ConvertLoops& convert = context.loops.convert;
  return MakeKernel([=, to_float = convert.to_float[FloatIndex(x.dtype)],
                     from_float = convert.from_float[FloatIndex(r.dtype)]] {
    ParallelRanges(x.elements(), kGrain, threads, [&](int64_t begin, int64_t end) {
      float chunk[kChunk];
      for (int64_t at = begin; at < end; at += kChunk) {
        const int64_t n = std::min(kChunk, end - at);
        to_float(x.data, at, n, chunk);
        from_float(chunk, r.data, at, n);
      }
    });
  });
}

}  // namespace

void RegisterCast(KernelRegistry& registry, Isa isa) { Add<MakeCast>(registry, "cast", isa); }

}  // namespace ft::cpu
