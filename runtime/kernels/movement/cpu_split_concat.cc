// split along the last dimension, concat along any.
#include <cstring>
#include <vector>

#include "runtime/backends/cpu/kernel_base.h"
#include "runtime/backends/cpu/register.h"
#include "runtime/kernels/movement/joined_parts.h"

namespace ft::cpu {
namespace {

template <bool kSplit>
KernelOr Make(const KernelContext& context) {
  const std::vector<Tensor>& wholes = kSplit ? context.operands.in : context.operands.out;
  const std::vector<Tensor>& tensors = kSplit ? context.operands.out : context.operands.in;
  if (wholes.size() != 1) return absl::InvalidArgumentError("takes one whole tensor and its parts");
  const Tensor& whole = wholes[0];
  FT_ASSIGN_OR_RETURN(JoinedParts joined, CheckParts(whole, tensors, context.attributes));
  const int64_t grain = std::max<int64_t>(1, 65536 / std::max<int64_t>(1, joined.row_bytes));
  const int threads = ThreadsFor(context.num_threads, whole.elements());
  return MakeKernel([=, joined = std::move(joined), data = whole.as<char>()] {
    ParallelRanges(joined.rows, grain, threads, [&](int64_t begin, int64_t end) {
      for (int64_t row = begin; row < end; ++row) {
        for (const JoinedParts::Part& part : joined.parts) {
          char* in_whole = data + row * joined.row_bytes + part.offset;
          char* in_part = part.data + row * part.bytes;
          std::memcpy(kSplit ? in_part : in_whole, kSplit ? in_whole : in_part, part.bytes);
        }
      }
    });
  });
}

}  // namespace

void RegisterSplitConcat(KernelRegistry& registry, Isa isa) {
  Add<Make<true>>(registry, "split", isa);
  Add<Make<false>>(registry, "concat", isa);
}

}  // namespace ft::cpu
