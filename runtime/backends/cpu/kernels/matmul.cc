#include "runtime/backends/cpu/gemm.h"
#include "runtime/backends/cpu/kernel_base.h"
#include "runtime/backends/cpu/register.h"

namespace ft::cpu {
namespace {

KernelOr MakeMatmul(const KernelContext& context) {
  FT_RETURN_IF_ERROR(CheckCounts(context.operands, 4, 1));
  const Tensor &a = context.in(0), &b = context.in(1), &bias = context.in(2), &acc = context.in(3),
               &r = context.out(0);
  FT_RETURN_IF_ERROR(CheckFloat(a, "a"));
  GemmShape shape;
  FT_ASSIGN_OR_RETURN(shape.transpose_a, Flag(context.attributes, "transpose_a"));
  FT_ASSIGN_OR_RETURN(shape.transpose_b, Flag(context.attributes, "transpose_b"));
  shape.m = shape.transpose_a ? a.last() : a.rows();
  shape.k = shape.transpose_a ? a.rows() : a.last();
  shape.n = shape.transpose_b ? b.rows() : b.last();
  shape.accumulate = acc.present();
  FT_RETURN_IF_ERROR(CheckSize(b, "b", shape.k * shape.n, a.dtype));
  if ((shape.transpose_b ? b.last() : b.rows()) != shape.k) {
    return absl::InvalidArgumentError("a and b must agree in the dimension that is summed over");
  }
  FT_RETURN_IF_ERROR(CheckFloatSize(r, "result", shape.m * shape.n));
  if (bias.present()) FT_RETURN_IF_ERROR(CheckSize(bias, "bias", shape.n, a.dtype));
  if (acc.present()) FT_RETURN_IF_ERROR(CheckSameShape(acc, "acc", r));
  FT_RETURN_IF_ERROR(CheckAccumulator(acc, r));
  const GemmInput left(a.data, a.dtype), right(b.data, b.dtype), row(bias.data, bias.dtype);
  const GemmOutput result(r.data, r.dtype);
  return MakeKernel([=, &routines = context.routines, threads = context.num_threads] {
    Gemm(routines, shape, left, right, row, result, threads);
  });
}

}  // namespace

void RegisterMatmul(KernelRegistry& registry, Isa isa) { Add<MakeMatmul>(registry, "matmul", isa); }

}  // namespace ft::cpu
