// split along the last dimension, concat along any.
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

// Elements of the dimensions before `axis`, each of which is a row here.
int64_t Rows(const Tensor& tensor, int64_t axis) {
  int64_t rows = 1;
  for (int64_t i = 0; i < axis; ++i) rows *= tensor.dims[i];
  return rows;
}

absl::StatusOr<std::vector<Part>> Parts(const Tensor& whole, const std::vector<Tensor>& tensors,
                                        int64_t axis) {
  std::vector<Part> parts;
  int64_t offset = 0;
  const int64_t size = static_cast<int64_t>(SizeOf(whole.dtype)), rows = Rows(whole, axis);
  for (const Tensor& tensor : tensors) {
    FT_RETURN_IF_ERROR(CheckPresent(tensor, "part", whole.dtype));
    if (tensor.rank != whole.rank || Rows(tensor, axis) != rows)
      return absl::InvalidArgumentError("all parts must have the rows of the whole");
    const int64_t bytes = tensor.elements() / rows * size;
    parts.push_back({tensor.as<char>(), offset, bytes});
    offset += bytes;
  }
  if (offset != whole.elements() / rows * size)
    return absl::InvalidArgumentError("the parts' columns must add up to the whole's");
  return parts;
}

// The last dimension unless the attribute names another.
absl::StatusOr<int64_t> AxisOf(const KernelAttributes& attributes, const Tensor& whole) {
  if (whole.rank == 0) return absl::InvalidArgumentError("the whole has no dimension");
  if (!attributes.Has("axis")) return whole.rank - 1;
  FT_ASSIGN_OR_RETURN(const int64_t axis, IntIn(attributes, "axis", -1, whole.rank - 1));
  return axis < 0 ? whole.rank - 1 : axis;
}

template <bool kSplit>
KernelOr Make(const KernelContext& context) {
  const std::vector<Tensor>& wholes = kSplit ? context.operands.in : context.operands.out;
  const std::vector<Tensor>& tensors = kSplit ? context.operands.out : context.operands.in;
  if (wholes.size() != 1) return absl::InvalidArgumentError("takes one whole tensor and its parts");
  const Tensor& whole = wholes[0];
  FT_RETURN_IF_ERROR(CheckNotEmpty(whole, "the whole", whole.dtype));
  FT_ASSIGN_OR_RETURN(const int64_t axis, AxisOf(context.attributes, whole));
  FT_ASSIGN_OR_RETURN(std::vector<Part> parts, Parts(whole, tensors, axis));
  const int64_t rows = Rows(whole, axis);
  const int64_t row_bytes = whole.elements() / rows * static_cast<int64_t>(SizeOf(whole.dtype));
  const int64_t grain = std::max<int64_t>(1, 65536 / std::max<int64_t>(1, row_bytes));
  const int threads = ThreadsFor(context.num_threads, whole.elements());
  return MakeKernel([=, parts = std::move(parts), data = whole.as<char>()] {
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
