// split and concat along the last dimension.
#include <cstring>
#include <vector>

#include "runtime/backends/cpu/kernel_base.h"
#include "runtime/backends/cpu/register.h"

namespace ft::cpu {
namespace {

// One part's columns inside the rows of the whole, in bytes.
struct Part {
  char* data;
  int64_t offset;
  int64_t bytes;
};

absl::StatusOr<std::vector<Part>> Parts(const Tensor& whole, const std::vector<Tensor>& tensors) {
  std::vector<Part> parts;
  int64_t offset = 0;
  const int64_t size = static_cast<int64_t>(SizeOf(whole.dtype));
  for (const Tensor& tensor : tensors) {
    FT_RETURN_IF_ERROR(CheckPresent(tensor, "part", whole.dtype));
    if (tensor.rows() != whole.rows())
      return absl::InvalidArgumentError("all parts must have the rows of the whole");
    parts.push_back({tensor.as<char>(), offset, tensor.last() * size});
    offset += tensor.last() * size;
  }
  if (offset != whole.last() * size)
    return absl::InvalidArgumentError("the parts' columns must add up to the whole's");
  return parts;
}

template <bool kSplit>
KernelOr Make(const KernelContext& context) {
  const std::vector<Tensor>& wholes = kSplit ? context.operands.in : context.operands.out;
  const std::vector<Tensor>& tensors = kSplit ? context.operands.out : context.operands.in;
  if (wholes.size() != 1) return absl::InvalidArgumentError("takes one whole tensor and its parts");
  const Tensor& whole = wholes[0];
  FT_RETURN_IF_ERROR(CheckPresent(whole, "the whole", whole.dtype));
  FT_ASSIGN_OR_RETURN(std::vector<Part> parts, Parts(whole, tensors));
  const int64_t row_bytes = whole.last() * static_cast<int64_t>(SizeOf(whole.dtype));
  const int64_t grain = std::max<int64_t>(1, 65536 / std::max<int64_t>(1, row_bytes));
  const int threads = ThreadsFor(context.num_threads, whole.elements());
  return MakeKernel([=, parts = std::move(parts), rows = whole.rows(), data = whole.as<char>()] {
    ParallelRanges(rows, grain, threads, [&](int64_t begin, int64_t end) {
      for (int64_t row = begin; row < end; ++row) {
        for (const Part& part : parts) {
          char* in_whole = data + row * row_bytes + part.offset;
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
