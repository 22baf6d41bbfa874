// copy and reshape.
#include <cstring>

#include "runtime/backends/cpu/kernel_base.h"
#include "runtime/backends/cpu/register.h"

namespace ft::cpu {
namespace {

constexpr int64_t kGrainBytes = 65536;

KernelOr MakeCopy(const KernelContext& context) {
  FT_RETURN_IF_ERROR(CheckCounts(context.operands, 1, 1));
  const Tensor &x = context.in(0), &r = context.out(0);
  FT_RETURN_IF_ERROR(CheckPresent(x, "x", x.dtype));
  FT_RETURN_IF_ERROR(CheckSize(r, "result", x.elements(), x.dtype));
  const int64_t bytes = x.elements() * static_cast<int64_t>(SizeOf(x.dtype));
  const int threads = ThreadsFor(context.num_threads, bytes / 4);
  return MakeKernel([=, from = x.as<char>(), to = r.as<char>()] {
    ParallelRanges(bytes, kGrainBytes, threads,
                   [&](int64_t begin, int64_t end) { std::memcpy(to + begin, from + begin, end - begin); });
  });
}

}  // namespace

void RegisterCopy(KernelRegistry& registry, Isa isa) {
  Add<MakeCopy>(registry, "copy", isa);
  Add<MakeCopy>(registry, "reshape", isa);
}

}  // namespace ft::cpu
