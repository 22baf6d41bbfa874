// dot: a product for each matrix of a batch.
#include "runtime/backends/cpu/gemm.h"
#include "runtime/backends/cpu/kernel_base.h"
#include "runtime/backends/cpu/register.h"
#include "runtime/device/batched_product.h"

namespace ft::cpu {
namespace {

KernelOr MakeDot(const KernelContext& context) {
  FT_ASSIGN_OR_RETURN(const BatchedProduct product,
                      CheckBatchedProduct(context.operands, context.attributes));
  const Tensor &a = context.in(0), &b = context.in(1), &r = context.out(0);
  const GemmShape shape = {.m = product.m,
                           .n = product.n,
                           .k = product.k,
                           .transpose_a = product.transpose_a,
                           .transpose_b = product.transpose_b};
  const auto step = [&](const Tensor& tensor) {
    return tensor.elements() / product.batch * static_cast<int64_t>(SizeOf(tensor.dtype));
  };
  return MakeKernel([=, &routines = context.routines, threads = context.num_threads, a_step = step(a),
                     b_step = step(b), r_step = step(r)] {
    for (int64_t i = 0; i < product.batch; ++i) {
      Gemm(routines, shape, {a.as<char>() + i * a_step, a.dtype}, {b.as<char>() + i * b_step, b.dtype},
           nullptr, {r.as<char>() + i * r_step, r.dtype}, threads);
    }
  });
}

}  // namespace

void RegisterDot(KernelRegistry& registry, Isa isa) { Add<MakeDot>(registry, "dot", isa); }

}  // namespace ft::cpu
