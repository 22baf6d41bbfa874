// found_inf and loss_count: what the executor is told of a step beyond its loss.
#include <algorithm>
#include <atomic>

#include "runtime/backends/cpu/kernel_base.h"
#include "runtime/backends/cpu/register.h"
#include "runtime/backends/cpu/routines/convert.h"

namespace ft::cpu {
namespace {

constexpr int64_t kBitmapWords = 64;

KernelOr MakeFoundInf(const KernelContext& context) {
  FT_RETURN_IF_ERROR(CheckCounts(context.operands, 3, 1));
  const Tensor &x = context.in(0), &rng = context.in(1), &acc = context.in(2), &bitmap = context.out(0);
  FT_RETURN_IF_ERROR(CheckFloat(x, "x"));
  FT_RETURN_IF_ERROR(CheckSize(rng, "rng", 3, DType::kI64));
  if (acc.present()) FT_RETURN_IF_ERROR(CheckSize(acc, "acc", kBitmapWords, DType::kI64));
  FT_RETURN_IF_ERROR(CheckAccumulator(acc, bitmap));
  FT_RETURN_IF_ERROR(CheckSize(bitmap, "bitmap", kBitmapWords, DType::kI64));
  if (context.world_size == 1 && x.elements() > 1) {
    // There is nobody else whose gradient it could be: the norm tells all.
    return MakeKernel([clear = !acc.present(), words = bitmap.as<int64_t>()] {
      if (clear) std::fill_n(words, kBitmapWords, int64_t{0});
    });
  }
  const int threads = ThreadsFor(context.num_threads, x.elements() / 4);
  return MakeKernel([=, all_finite = context.routines.convert.all_finite[FloatIndex(x.dtype)],
                     clear = !acc.present(), state = rng.as<int64_t>(), words = bitmap.as<int64_t>()] {
    if (clear) std::fill_n(words, kBitmapWords, int64_t{0});
    std::atomic<bool> sound{true};
    ParallelRanges(x.elements(), kGrain, threads, [&](int64_t begin, int64_t end) {
      if (!all_finite(x.data, begin, end - begin)) sound.store(false, std::memory_order_relaxed);
    });
    if (sound.load()) return;
    const uint64_t rank = static_cast<uint64_t>(state[2]);
    words[rank / 64 % kBitmapWords] |= static_cast<int64_t>(uint64_t{1} << rank % 64);
  });
}

KernelOr MakeLossCount(const KernelContext& context) {
  FT_RETURN_IF_ERROR(CheckCounts(context.operands, 2, 1));
  const Tensor &loss = context.in(0), &targets = context.in(1), &sum = context.out(0);
  FT_RETURN_IF_ERROR(CheckSize(loss, "loss", 1));
  FT_RETURN_IF_ERROR(CheckPresent(targets, "targets", DType::kI32));
  FT_RETURN_IF_ERROR(CheckSize(sum, "sum", 2));
  return MakeKernel([=, mean = loss.as<float>(), ids = targets.as<int32_t>(), elements = targets.elements(),
                     result = sum.as<float>()] {
    const int64_t n = std::count_if(ids, ids + elements, [](int32_t id) { return id >= 0; });
    result[0] = static_cast<float>(double{*mean} * static_cast<double>(n));
    result[1] = static_cast<float>(n);
  });
}

}  // namespace

void RegisterFoundInf(KernelRegistry& registry, Isa isa) {
  Add<MakeFoundInf>(registry, "found_inf", isa);
  Add<MakeLossCount>(registry, "loss_count", isa);
}

}  // namespace ft::cpu
