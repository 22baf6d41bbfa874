// dot: by a kernel of our own, since the library wants a workspace, and a call for each matrix that is
// aligned as no other.
#include "runtime/backends/cuda/routines/dot.h"

#include "fmt/format.h"
#include "runtime/backends/cuda/register.h"
#include "runtime/device/batched_product.h"

namespace ft::cuda {
namespace {

KernelOr MakeDot(const KernelContext& context) {
  FT_ASSIGN_OR_RETURN(const BatchedProduct product,
                      CheckBatchedProduct(context.operands, context.attributes));
  const Tensor &a = context.in(0), &b = context.in(1), &r = context.out(0);
  const DotArgs args = {.a = a.data,
                        .b = b.data,
                        .r = r.data,
                        .m = product.m,
                        .n = product.n,
                        .k = product.k,
                        .transpose_a = product.transpose_a,
                        .transpose_b = product.transpose_b,
                        .batch = product.batch};
  if (DotBlocks(args) >= (int64_t{1} << 31) - 1) {
    return absl::InvalidArgumentError(fmt::format("{} products of {} x {} are too many for one launch",
                                                  product.batch, product.m, product.n));
  }
  return MakeKernel([args, input = a.dtype, output = r.dtype](StreamHandle stream) {
    return Dot(args, input, output, stream);
  });
}

}  // namespace

void RegisterDot(KernelTable& table) { table.Add("dot", &MakeDot); }

}  // namespace ft::cuda
