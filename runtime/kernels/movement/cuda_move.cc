// transpose, slice, pad: strided copies.
#include "runtime/kernels/movement/cuda_move.h"

#include <vector>

#include "runtime/backends/cuda/register.h"
#include "runtime/kernels/movement/cuda_device.h"
#include "runtime/kernels/movement/cuda_strided.h"

namespace ft::cuda {
namespace {

static_assert(kMostLoops == kMaxRank);

// The largest unit that divides all addresses and strides where lines are dense in both, else an element.
int64_t UnitOf(const StridedCopy& copy) {
  const int last = copy.rank - 1;
  if (copy.rank == 0 || copy.from_strides[last] != 1 || copy.to_strides[last] != 1) return copy.element_bytes;
  uint64_t all = 16 | reinterpret_cast<uintptr_t>(copy.from) | reinterpret_cast<uintptr_t>(copy.to);
  all |= static_cast<uint64_t>(copy.dims[last] * copy.element_bytes);
  for (int i = 0; i < last; ++i)
    all |= static_cast<uint64_t>((copy.from_strides[i] | copy.to_strides[i]) * copy.element_bytes);
  return static_cast<int64_t>(all & -all);
}

struct StridedLaunch {
  StridedArgs args;
  int unit;
};

StridedLaunch LaunchOf(const StridedCopy& copy) {
  const int64_t unit = UnitOf(copy), width = unit / copy.element_bytes;
  StridedArgs args = {.from = copy.from, .to = copy.to, .loops = {}, .from_strides = {}, .units = 0};
  args.loops.rank = copy.rank;
  args.units = copy.elements() / width;
  const int last = copy.rank - 1;
  for (int i = 0; i < copy.rank; ++i) {
    args.loops.dims[i] = i == last ? copy.dims[i] / width : copy.dims[i];
    args.loops.strides[i] = i == last ? copy.to_strides[i] : copy.to_strides[i] / width;
    args.from_strides[i] = i == last ? copy.from_strides[i] : copy.from_strides[i] / width;
  }
  return {args, static_cast<int>(unit)};
}

KernelOr MakeTranspose(const KernelContext& context) {
  FT_RETURN_IF_ERROR(CheckCounts(context.operands, 1, 1));
  FT_ASSIGN_OR_RETURN(const std::vector<int64_t> permutation, context.attributes.Ints("permutation"));
  FT_ASSIGN_OR_RETURN(const StridedCopy copy, TransposeCopy(context.in(0), context.out(0), permutation));
  return MakeStridedCopy(copy);
}

KernelOr MakeSlice(const KernelContext& context) {
  FT_RETURN_IF_ERROR(CheckCounts(context.operands, 1, 1));
  FT_ASSIGN_OR_RETURN(const std::vector<int64_t> begin, context.attributes.Ints("begin"));
  FT_ASSIGN_OR_RETURN(const StridedCopy copy, SliceCopy(context.in(0), context.out(0), begin));
  return MakeStridedCopy(copy);
}

KernelOr MakePad(const KernelContext& context) {
  FT_RETURN_IF_ERROR(CheckCounts(context.operands, 1, 1));
  const Tensor& result = context.out(0);
  FT_ASSIGN_OR_RETURN(const std::vector<int64_t> low, context.attributes.Ints("low"));
  FT_ASSIGN_OR_RETURN(const StridedCopy copy, PadCopy(context.in(0), result, low));
  const int64_t bytes = result.elements() * static_cast<int64_t>(SizeOf(result.dtype));
  return MakeKernel([to = result.data, bytes, launch = LaunchOf(Simplified(copy))](StreamHandle stream) {
    if (const int error = FillZeros(to, bytes, stream); error != 0) return error;
    return CopyStrided(launch.args, launch.unit, stream);
  });
}

}  // namespace

KernelOr MakeStridedCopy(const StridedCopy& copy) {
  return MakeKernel([launch = LaunchOf(Simplified(copy))](StreamHandle stream) {
    return CopyStrided(launch.args, launch.unit, stream);
  });
}

void RegisterMove(KernelTable& table) {
  table.Add("transpose", &MakeTranspose);
  table.Add("slice", &MakeSlice);
  table.Add("pad", &MakePad);
}

}  // namespace ft::cuda
