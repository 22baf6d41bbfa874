// transpose, slice, pad, and broadcast along any dimensions: strided copies.
#include <cstring>
#include <vector>

#include "runtime/backends/cpu/kernel_base.h"
#include "runtime/backends/cpu/register.h"
#include "runtime/kernels/movement/strided_copy.h"

namespace ft::cpu {
namespace {

template <typename T>
void CopyLine(const char* from, char* to, int64_t n, int64_t from_stride, int64_t to_stride) {
  const T* source = reinterpret_cast<const T*>(from);
  T* target = reinterpret_cast<T*>(to);
  for (int64_t i = 0; i < n; ++i) target[i * to_stride] = source[i * from_stride];
}

// Lines along the last dimension, those from `begin` to `end`.
void CopyLines(const StridedCopy& copy, int64_t begin, int64_t end) {
  const int last = copy.rank - 1;
  const int64_t n = copy.dims[last], from_stride = copy.from_strides[last], to_stride = copy.to_strides[last];
  for (int64_t line = begin; line < end; ++line) {
    int64_t from = 0, to = 0, rest = line;
    for (int i = last - 1; i >= 0; --i) {
      from += rest % copy.dims[i] * copy.from_strides[i];
      to += rest % copy.dims[i] * copy.to_strides[i];
      rest /= copy.dims[i];
    }
    const char* source = static_cast<const char*>(copy.from) + from * copy.element_bytes;
    char* target = static_cast<char*>(copy.to) + to * copy.element_bytes;
    if (from_stride == 1 && to_stride == 1) {
      std::memcpy(target, source, n * copy.element_bytes);
      continue;
    }
    switch (copy.element_bytes) {
      case 1:
        CopyLine<uint8_t>(source, target, n, from_stride, to_stride);
        break;
      case 2:
        CopyLine<uint16_t>(source, target, n, from_stride, to_stride);
        break;
      case 4:
        CopyLine<uint32_t>(source, target, n, from_stride, to_stride);
        break;
      default:
        CopyLine<uint64_t>(source, target, n, from_stride, to_stride);
    }
  }
}

// A line is cut where it is long, so that threads have several.
constexpr int64_t kLongLine = 16384;

StridedCopy WithShortLines(StridedCopy copy) {
  if (copy.rank == 0) copy.dims[0] = copy.rank = 1;
  const int last = copy.rank - 1;
  if (copy.rank == kMaxRank || copy.dims[last] <= kLongLine || copy.dims[last] % kLongLine != 0) return copy;
  copy.dims[copy.rank] = kLongLine;
  copy.from_strides[copy.rank] = copy.from_strides[last];
  copy.to_strides[copy.rank] = copy.to_strides[last];
  copy.dims[last] /= kLongLine;
  copy.from_strides[last] *= kLongLine;
  copy.to_strides[last] *= kLongLine;
  ++copy.rank;
  return copy;
}

KernelOr MakeCopies(const KernelContext& context, const StridedCopy& whole, void* zeroed,
                    int64_t zeroed_bytes) {
  const StridedCopy copy = WithShortLines(Simplified(whole));
  const int64_t lines = copy.elements() / copy.dims[copy.rank - 1];
  const int threads = ThreadsFor(context.num_threads, copy.elements());
  const int64_t grain = std::max<int64_t>(1, kGrain / copy.dims[copy.rank - 1]);
  return MakeKernel([=] {
    if (zeroed_bytes != 0) std::memset(zeroed, 0, zeroed_bytes);
    ParallelRanges(lines, grain, threads, [&](int64_t begin, int64_t end) { CopyLines(copy, begin, end); });
  });
}

KernelOr MakeTranspose(const KernelContext& context) {
  FT_RETURN_IF_ERROR(CheckCounts(context.operands, 1, 1));
  FT_ASSIGN_OR_RETURN(const std::vector<int64_t> permutation, context.attributes.Ints("permutation"));
  FT_ASSIGN_OR_RETURN(const StridedCopy copy, TransposeCopy(context.in(0), context.out(0), permutation));
  return MakeCopies(context, copy, nullptr, 0);
}

KernelOr MakeSlice(const KernelContext& context) {
  FT_RETURN_IF_ERROR(CheckCounts(context.operands, 1, 1));
  FT_ASSIGN_OR_RETURN(const std::vector<int64_t> begin, context.attributes.Ints("begin"));
  FT_ASSIGN_OR_RETURN(const StridedCopy copy, SliceCopy(context.in(0), context.out(0), begin));
  return MakeCopies(context, copy, nullptr, 0);
}

KernelOr MakePad(const KernelContext& context) {
  FT_RETURN_IF_ERROR(CheckCounts(context.operands, 1, 1));
  const Tensor& result = context.out(0);
  FT_ASSIGN_OR_RETURN(const std::vector<int64_t> low, context.attributes.Ints("low"));
  FT_ASSIGN_OR_RETURN(const StridedCopy copy, PadCopy(context.in(0), result, low));
  return MakeCopies(context, copy, result.data,
                    result.elements() * static_cast<int64_t>(SizeOf(result.dtype)));
}

KernelOr MakeBroadcast(const KernelContext& context) {
  FT_RETURN_IF_ERROR(CheckCounts(context.operands, 1, 1));
  FT_ASSIGN_OR_RETURN(const StridedCopy copy, BroadcastCopy(context.in(0), context.out(0)));
  return MakeCopies(context, copy, nullptr, 0);
}

}  // namespace

void RegisterMove(KernelRegistry& registry, Isa isa) {
  Add<MakeTranspose>(registry, "transpose", isa);
  Add<MakeSlice>(registry, "slice", isa);
  Add<MakePad>(registry, "pad", isa);
  Add<MakeBroadcast>(registry, "broadcast", isa);
}

}  // namespace ft::cpu
