// matmul, and what reads its result at once: matmul_gelu, matmul_gelu_grad.
#include <algorithm>
#include <limits>
#include <memory>
#include <utility>
#include <vector>

#include "fmt/format.h"
#include "runtime/backends/cpu/gemm.h"
#include "runtime/backends/cpu/kernels/cluster.h"
#include "runtime/backends/cpu/register.h"
#include "runtime/base/checked.h"

namespace ft::cpu {
namespace {

constexpr int64_t kMostExtent = std::numeric_limits<int32_t>::max();  // of the BLAS

struct Product {
  const Routines& routines;
  GemmShape shape;
  GemmInput a, b, bias;
  GemmOutput result;
  int threads;

  void Run() const { Gemm(routines, shape, a, b, bias, result, threads); }
};

// Bias and acc may be absent.
absl::StatusOr<Product> CheckProduct(const KernelContext& context, const Tensor& a, const Tensor& b,
                                     const Tensor& bias, const Tensor& acc, const Tensor& result) {
  FT_RETURN_IF_ERROR(CheckFloat(a, "a"));
  GemmShape shape;
  FT_ASSIGN_OR_RETURN(shape.transpose_a, Flag(context.attributes, "transpose_a"));
  FT_ASSIGN_OR_RETURN(shape.transpose_b, Flag(context.attributes, "transpose_b"));
  shape.m = shape.transpose_a ? a.last() : a.rows();
  shape.k = shape.transpose_a ? a.rows() : a.last();
  shape.n = shape.transpose_b ? b.rows() : b.last();
  shape.accumulate = acc.present();
  if (std::max({shape.m, shape.n, shape.k}) > kMostExtent) {
    return absl::InvalidArgumentError(
        fmt::format("a product of [{}, {}] and [{}, {}] is too large", shape.m, shape.k, shape.k, shape.n));
  }
  FT_RETURN_IF_ERROR(CheckSize(b, "b", CheckedMul(shape.k, shape.n), a.dtype));
  if ((shape.transpose_b ? b.last() : b.rows()) != shape.k) {
    return absl::InvalidArgumentError("a and b must agree in the dimension that is summed over");
  }
  FT_RETURN_IF_ERROR(CheckFloatSize(result, "result", CheckedMul(shape.m, shape.n)));
  if (bias.present()) FT_RETURN_IF_ERROR(CheckSize(bias, "bias", shape.n, a.dtype));
  if (acc.present()) FT_RETURN_IF_ERROR(CheckSameShape(acc, "acc", result));
  FT_RETURN_IF_ERROR(CheckAccumulator(acc, result));
  return Product{context.routines,
                 shape,
                 GemmInput(a.data, a.dtype),
                 GemmInput(b.data, b.dtype),
                 GemmInput(bias.data, bias.dtype),
                 GemmOutput(result.data, result.dtype),
                 context.num_threads};
}

KernelOr MakeMatmul(const KernelContext& context) {
  FT_RETURN_IF_ERROR(CheckCounts(context.operands, 4, 1));
  FT_ASSIGN_OR_RETURN(const Product product, CheckProduct(context, context.in(0), context.in(1),
                                                          context.in(2), context.in(3), context.out(0)));
  return MakeKernel([product] { product.Run(); });
}

// The product, then the cluster on `in`, which has the product's result.
KernelOr MakeThen(const KernelContext& context, const Product& product, std::vector<Tensor> in,
                  const Tensor& result) {
  const KernelOperands operands = {.in = std::move(in), .out = {result}, .workspace = {}};
  FT_ASSIGN_OR_RETURN(std::shared_ptr<Kernel> cluster,
                      MakeCluster({context.routines, operands, context.attributes, context.num_threads,
                                   context.world_size, context.isa}));
  return MakeKernel([product, cluster = std::move(cluster)] {
    product.Run();
    static_cast<CpuKernel&>(*cluster).Run();
  });
}

KernelOr MakeMatmulGelu(const KernelContext& context) {
  const bool keeps = context.operands.out.size() == 2;
  FT_RETURN_IF_ERROR(CheckCounts(context.operands, 3, keeps ? 2 : 1));
  const Tensor &a = context.in(0), &result = context.out(0), &x = context.out(keeps ? 1 : 0);
  FT_ASSIGN_OR_RETURN(const Product product,
                      CheckProduct(context, a, context.in(1), context.in(2), Tensor(), x));
  FT_RETURN_IF_ERROR(CheckSameShape(x, "x", result));
  return MakeThen(context, product, {x}, result);
}

KernelOr MakeMatmulGeluGrad(const KernelContext& context) {
  FT_RETURN_IF_ERROR(CheckCounts(context.operands, 3, 1));
  const Tensor &a = context.in(0), &x = context.in(2), &dx = context.out(0);
  FT_ASSIGN_OR_RETURN(const Product product, CheckProduct(context, a, context.in(1), Tensor(), Tensor(), dx));
  FT_RETURN_IF_ERROR(CheckSameShape(x, "x", dx));
  return MakeThen(context, product, {x, dx}, dx);
}

}  // namespace

void RegisterMatmul(KernelRegistry& registry, Isa isa) {
  Add<MakeMatmul>(registry, "matmul", isa);
  Add<MakeMatmulGelu>(registry, "matmul_gelu", isa);
  Add<MakeMatmulGeluGrad>(registry, "matmul_gelu_grad", isa);
}

}  // namespace ft::cpu
