// accumulate and accumulated: sums over micro-steps. Arithmetic is in f32; each sum is rounded once.
#include <algorithm>
#include <cstring>

#include "runtime/backends/cpu/kernel_base.h"
#include "runtime/backends/cpu/register.h"
#include "runtime/kernels/accumulate/cpu_loops.h"
#include "runtime/kernels/accumulate/operands.h"
#include "runtime/kernels/cast/cpu_loops.h"

namespace ft::cpu {
namespace {

// Counts, which are few.
KernelOr MakeIntegers(const AccumulateOperands& read) {
  return MakeKernel([x = read.x.as<int64_t>(), state = read.state.as<int64_t>(),
                     elements = read.state.elements(), result = read.result.as<int64_t>()] {
    for (int64_t i = 0; i < elements; ++i) {
      const int64_t sum = state[i] + (x == nullptr ? 0 : x[i]);
      state[i] = result == nullptr ? sum : 0;
      if (result != nullptr) result[i] = sum;
    }
  });
}

class FloatSums {
 public:
  FloatSums(const Loops& loops, const AccumulateOperands& read)
      : read_(read),
        state_to_float_(loops.convert.to_float[FloatIndex(read.state.dtype)]),
        state_from_float_(loops.convert.from_float[FloatIndex(read.state.dtype)]) {
    if (read.x.present()) add_ = loops.accumulate.add_into[FloatIndex(read.x.dtype)];
    if (read.result.present()) result_from_float_ = loops.convert.from_float[FloatIndex(read.result.dtype)];
  }

  void Run(int64_t begin, int64_t end) const {
    if (read_.state.dtype == DType::kF32 && !read_.result.present())
      return add_(read_.x.data, begin, end - begin, read_.state.as<float>() + begin);
    for (int64_t at = begin; at < end; at += kChunk) RunChunk(at, std::min(kChunk, end - at));
  }

 private:
  static constexpr int64_t kChunk = 1024;  // in the first-level cache

  void RunChunk(int64_t at, int64_t n) const {
    alignas(64) float sum[kChunk];
    state_to_float_(read_.state.data, at, n, sum);
    if (add_ != nullptr) add_(read_.x.data, at, n, sum);
    if (result_from_float_ == nullptr) return state_from_float_(sum, read_.state.data, at, n);
    result_from_float_(sum, read_.result.data, at, n);
    const auto size = static_cast<int64_t>(SizeOf(read_.state.dtype));
    std::memset(read_.state.as<char>() + at * size, 0, static_cast<size_t>(n * size));
  }

  AccumulateOperands read_;
  void (*state_to_float_)(const void*, int64_t, int64_t, float*);
  void (*state_from_float_)(const float*, void*, int64_t, int64_t);
  void (*add_)(const void*, int64_t, int64_t, float*) = nullptr;
  void (*result_from_float_)(const float*, void*, int64_t, int64_t) = nullptr;
};

KernelOr MakeSums(const KernelContext& context, const AccumulateOperands& read) {
  if (read.state.dtype == DType::kI64) return MakeIntegers(read);
  const int64_t elements = read.state.elements();
  const int threads = ThreadsFor(context.num_threads, elements);
  return MakeKernel([sums = FloatSums(context.loops, read), elements, threads] {
    ParallelRanges(elements, kGrain, threads, [&](int64_t begin, int64_t end) { sums.Run(begin, end); });
  });
}

KernelOr MakeAccumulate(const KernelContext& context) {
  FT_ASSIGN_OR_RETURN(const AccumulateOperands read, ReadAccumulate(context.operands));
  return MakeSums(context, read);
}

KernelOr MakeAccumulated(const KernelContext& context) {
  FT_ASSIGN_OR_RETURN(const AccumulateOperands read, ReadAccumulated(context.operands));
  return MakeSums(context, read);
}

}  // namespace

void RegisterAccumulate(KernelRegistry& registry, Isa isa) {
  Add<MakeAccumulate>(registry, "accumulate", isa);
  Add<MakeAccumulated>(registry, "accumulated", isa);
}

}  // namespace ft::cpu
