// dropout, which is its own gradient's kernel too.
#include <cmath>

#include "runtime/backends/cpu/kernel_base.h"
#include "runtime/backends/cpu/register.h"
#include "runtime/backends/cpu/routines/random.h"
#include "runtime/base/philox.h"

namespace ft::cpu {
namespace {

constexpr int64_t kCostPerElement = 16;  // of ten rounds for four words, in multiply-adds

KernelOr MakeDropout(const KernelContext& context) {
  FT_RETURN_IF_ERROR(CheckCounts(context.operands, 2, 1));
  const Tensor &x = context.in(0), &rng = context.in(1), &r = context.out(0);
  FT_RETURN_IF_ERROR(CheckFloat(x, "x"));
  FT_RETURN_IF_ERROR(CheckSize(rng, "rng", 3, DType::kI64));
  FT_RETURN_IF_ERROR(CheckSameShape(r, "result", x));
  FT_ASSIGN_OR_RETURN(const double rate, FloatIn(context.attributes, "rate", 0.0, kMaxDropoutRate));
  FT_ASSIGN_OR_RETURN(const uint32_t stream, RandomStream(context.attributes));
  // u = k 2^-24 >= rate exactly when k >= ceil(rate 2^24).
  const uint32_t threshold = static_cast<uint32_t>(std::ceil(rate * 0x1p24));
  const float factor = static_cast<float>(1.0 / (1.0 - rate));
  const int64_t elements = x.elements();
  const int threads = ThreadsFor(context.num_threads, kCostPerElement * elements);
  return MakeKernel([=, routine = context.routines.random.dropout[FloatIndex(x.dtype)], from = x.data,
                     to = r.data, state = rng.as<int64_t>()] {
    const DropoutArgs args = {static_cast<uint64_t>(state[0]),
                              kFirstOpStream + stream,
                              static_cast<uint32_t>(state[1]),
                              static_cast<uint64_t>(state[2]) * static_cast<uint64_t>(elements),
                              threshold,
                              factor};
    ParallelRanges(elements, kGrain, threads,
                   [&](int64_t begin, int64_t end) { routine(args, from, to, begin, end); });
  });
}

}  // namespace

void RegisterDropout(KernelRegistry& registry, Isa isa) { Add<MakeDropout>(registry, "dropout", isa); }

}  // namespace ft::cpu
