// dot: by a kernel of our own, since the library wants a workspace, and a call for each matrix that is
// aligned as no other. grouped_dot and grouped_dot_grad: the host does not know where groups end.
#include "fmt/format.h"
#include "runtime/backends/cuda/register.h"
#include "runtime/kernels/dot/cuda_device.h"
#include "runtime/kernels/dot/operands.h"
#include "runtime/kernels/index/operands.h"

namespace ft::cuda {
namespace {

// `products` are those that `blocks` are for, in words.
absl::Status CheckBlocks(int64_t blocks, const std::string& products) {
  if (blocks < (int64_t{1} << 31) - 1) return absl::OkStatus();
  return absl::InvalidArgumentError(fmt::format("{} are too many for one launch", products));
}

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
  FT_RETURN_IF_ERROR(CheckBlocks(DotBlocks(args),
                                 fmt::format("{} products of {} x {}", product.batch, product.m, product.n)));
  return MakeKernel([args, input = a.dtype, output = r.dtype](StreamHandle stream) {
    return Dot(args, input, output, stream);
  });
}

GroupedDotArgs GroupedArgs(const GroupedProduct& product, const KernelContext& context) {
  return {.a = context.in(0).data,
          .b = context.in(1).data,
          .ends = product.ends,
          .r = context.out(0).data,
          .rows = product.rows,
          .groups = product.groups,
          .k = product.k,
          .n = product.n,
          .transpose_b = product.transpose_b};
}

absl::Status CheckGroupedBlocks(int64_t blocks, const GroupedProduct& product) {
  return CheckBlocks(blocks, fmt::format("{} groups of {} x {} in {} rows", product.groups, product.k,
                                         product.n, product.rows));
}

KernelOr MakeGroupedDot(const KernelContext& context) {
  FT_ASSIGN_OR_RETURN(const GroupedProduct product, CheckGroupedDot(context.operands, context.attributes));
  const GroupedDotArgs args = GroupedArgs(product, context);
  FT_RETURN_IF_ERROR(CheckGroupedBlocks(GroupedDotBlocks(args), product));
  return MakeKernel([args, input = context.in(0).dtype, output = context.out(0).dtype](StreamHandle stream) {
    return GroupedDot(args, input, output, stream);
  });
}

KernelOr MakeGroupedDotGrad(const KernelContext& context) {
  FT_ASSIGN_OR_RETURN(const GroupedProduct product, CheckGroupedDotGrad(context.operands));
  GroupedDotArgs args = GroupedArgs(product, context);
  args.accumulate = context.in(3).present();
  FT_RETURN_IF_ERROR(CheckGroupedBlocks(GroupedDotGradBlocks(args), product));
  return MakeKernel([args, input = context.in(0).dtype, output = context.out(0).dtype](StreamHandle stream) {
    return GroupedDotGrad(args, input, output, stream);
  });
}

}  // namespace

void RegisterDot(KernelTable& table) {
  table.Add("dot", &MakeDot);
  table.Add("grouped_dot", &MakeGroupedDot);
  table.Add("grouped_dot_grad", &MakeGroupedDotGrad);
}

}  // namespace ft::cuda
