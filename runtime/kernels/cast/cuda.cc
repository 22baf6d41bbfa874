#include "runtime/backends/cuda/register.h"
#include "runtime/kernels/cast/cuda_device.h"

namespace ft::cuda {
namespace {

KernelOr MakeCast(const KernelContext& context) {
  FT_RETURN_IF_ERROR(CheckCounts(context.operands, 1, 1));
  const Tensor &x = context.in(0), &r = context.out(0);
  FT_RETURN_IF_ERROR(CheckFloat(x, "x"));
  FT_RETURN_IF_ERROR(CheckFloatSize(r, "result", x.elements()));
  const UnaryArgs args = {x.data, r.data, x.elements()};
  return MakeKernel(
      [args, from = x.dtype, to = r.dtype](StreamHandle stream) { return Cast(args, from, to, stream); });
}

}  // namespace

void RegisterCast(KernelTable& table) { table.Add("cast", &MakeCast); }

}  // namespace ft::cuda
