#include <algorithm>
#include <atomic>

#include "runtime/backends/cpu/kernel_base.h"
#include "runtime/backends/cpu/register.h"
#include "runtime/base/flat_layout.h"
#include "runtime/kernels/cast/cpu_loops.h"
#include "runtime/kernels/gradient_norm/operands.h"

namespace ft::cpu {
namespace {

KernelOr MakeFoundInf(const KernelContext& context) {
  FT_ASSIGN_OR_RETURN(const FoundInfOperands read, ReadFoundInf(context.operands, context.world_size));
  const int threads = ThreadsFor(context.num_threads, read.x.elements() / 4);
  return MakeKernel([=, all_finite = context.loops.convert.all_finite[FloatIndex(read.x.dtype)]] {
    if (read.clear) std::fill_n(read.bitmap, kFoundInfWords, int64_t{0});
    if (!read.looks) return;
    std::atomic<bool> sound{true};
    ParallelRanges(read.x.elements(), kGrain, threads, [&](int64_t begin, int64_t end) {
      if (!all_finite(read.x.data, begin, end - begin)) sound.store(false, std::memory_order_relaxed);
    });
    if (sound.load()) return;
    const uint64_t rank = static_cast<uint64_t>(read.rng[2]);
    read.bitmap[rank / 64 % kFoundInfWords] |= static_cast<int64_t>(uint64_t{1} << rank % 64);
  });
}

}  // namespace

void RegisterFoundInf(KernelRegistry& registry, Isa isa) { Add<MakeFoundInf>(registry, "found_inf", isa); }

}  // namespace ft::cpu
