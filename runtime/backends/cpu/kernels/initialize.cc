// init_normal and init_constant: a parameter's part of what this rank holds of its unit.
#include <algorithm>

#include "runtime/backends/cpu/kernel_base.h"
#include "runtime/backends/cpu/register.h"
#include "runtime/backends/cpu/routines/convert.h"
#include "runtime/backends/cpu/routines/optimizer.h"
#include "runtime/backends/cpu/routines/random.h"

namespace ft::cpu {
namespace {

// Elements [begin, end) of the slice, where the parameter's element `first` is the one at `begin`.
struct Target {
  void* data;
  DType dtype;  // f32, bf16 or f16
  int64_t begin;
  int64_t end;
  int64_t first;
  float value;
};

constexpr int64_t kDrawn = 2048;  // elements drawn in f32 before they are rounded

absl::StatusOr<Target> FindTarget(const KernelContext& context) {
  FT_RETURN_IF_ERROR(CheckCounts(context.operands, 1, 1));
  const Tensor &rng = context.in(0), &slice = context.out(0);
  FT_RETURN_IF_ERROR(CheckSize(rng, "rng", 3, DType::kI64));
  FT_RETURN_IF_ERROR(CheckFloat(slice, "slice"));
  FT_ASSIGN_OR_RETURN(const int64_t begin, context.attributes.Int("begin"));
  FT_ASSIGN_OR_RETURN(const int64_t end, context.attributes.Int("end"));
  FT_ASSIGN_OR_RETURN(const double value, context.attributes.Float("value"));
  Target target;
  target.data = slice.data;
  target.dtype = slice.dtype;
  target.begin = std::clamp<int64_t>(begin - slice.flat_begin, 0, slice.elements());
  target.end = std::clamp<int64_t>(end - slice.flat_begin, target.begin, slice.elements());
  target.first = target.begin + slice.flat_begin - begin;
  target.value = static_cast<float>(value);
  return target;
}

KernelOr MakeInitNormal(const KernelContext& context) {
  FT_ASSIGN_OR_RETURN(const Target target, FindTarget(context));
  FT_ASSIGN_OR_RETURN(const int64_t stream, context.attributes.Int("stream"));
  if (target.begin < target.end && target.first % 4 != 0) {
    return absl::InvalidArgumentError("the slice must begin at a multiple of 4 elements of the parameter");
  }
  const int threads = ThreadsFor(context.num_threads, 16 * (target.end - target.begin));
  return MakeKernel([=, normal = context.routines.random.normal, rng = context.in(0).as<int64_t>(),
                     from_float = context.routines.convert.from_float[FloatIndex(target.dtype)]] {
    const NormalArgs args = {static_cast<uint64_t>(rng[0]), static_cast<uint32_t>(stream), 0, target.value};
    ParallelRanges(target.end - target.begin, kGrain, threads, [&](int64_t begin, int64_t end) {
      if (target.dtype == DType::kF32) {
        float* data = static_cast<float*>(target.data) + target.begin;
        normal(args, data + begin, target.first + begin, end - begin);
        return;
      }
      float drawn[kDrawn];
      for (int64_t at = begin; at < end; at += kDrawn) {
        const int64_t n = std::min(kDrawn, end - at);
        normal(args, drawn, target.first + at, n);
        from_float(drawn, target.data, target.begin + at, n);
      }
    });
  });
}

KernelOr MakeInitConstant(const KernelContext& context) {
  FT_ASSIGN_OR_RETURN(const Target target, FindTarget(context));
  const int threads = ThreadsFor(context.num_threads, target.end - target.begin);
  uint16_t bits = 0;
  if (target.dtype != DType::kF32)
    context.routines.convert.from_float[FloatIndex(target.dtype)](&target.value, &bits, 0, 1);
  return MakeKernel([=, fill = context.routines.optimizer.fill] {
    ParallelRanges(target.end - target.begin, kGrain, threads, [&](int64_t begin, int64_t end) {
      if (target.dtype == DType::kF32) {
        fill(static_cast<float*>(target.data) + target.begin, target.value, begin, end);
        return;
      }
      uint16_t* data = static_cast<uint16_t*>(target.data) + target.begin;
      std::fill(data + begin, data + end, bits);
    });
  });
}

}  // namespace

void RegisterInitialize(KernelRegistry& registry, Isa isa) {
  Add<MakeInitNormal>(registry, "init_normal", isa);
  Add<MakeInitConstant>(registry, "init_constant", isa);
}

}  // namespace ft::cpu
