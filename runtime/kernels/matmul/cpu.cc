// matmul, what reads its result at once (matmul_gelu, matmul_gelu_grad), and what reads its operand
// (matmul_bias_grad).
#include "runtime/kernels/cluster/cpu.h"

#include <algorithm>
#include <limits>
#include <memory>
#include <utility>
#include <vector>

#include "fmt/format.h"
#include "runtime/backends/cpu/gemm.h"
#include "runtime/backends/cpu/register.h"
#include "runtime/base/workspace.h"
#include "runtime/kernels/matmul/cpu_float8.h"
#include "runtime/kernels/matmul/operands.h"

namespace ft::cpu {
namespace {

constexpr int64_t kMostExtent = std::numeric_limits<int32_t>::max();  // of the BLAS

struct Product {
  const Loops& loops;
  GemmShape shape;
  GemmInput a, b, bias;
  GemmOutput result;
  int threads;

  void Run() const { Gemm(loops, shape, a, b, bias, result, threads); }
};

// Bias and acc may be absent.
absl::StatusOr<Product> MakeProduct(const KernelContext& context, const Tensor& a, const Tensor& b,
                                    const Tensor& bias, const Tensor& acc, const Tensor& result) {
  FT_ASSIGN_OR_RETURN(const ProductShape shape, CheckProduct(context.attributes, a, b, bias, acc, result));
  if (std::max({shape.m, shape.n, shape.k}) > kMostExtent) {
    return absl::InvalidArgumentError(
        fmt::format("a product of [{}, {}] and [{}, {}] is too large", shape.m, shape.k, shape.k, shape.n));
  }
  return Product{context.loops,
                 {shape.m, shape.n, shape.k, shape.transpose_a, shape.transpose_b, acc.present()},
                 GemmInput(a.data, a.dtype),
                 GemmInput(b.data, b.dtype),
                 GemmInput(bias.data, bias.dtype),
                 GemmOutput(result.data, result.dtype),
                 context.num_threads};
}

// The product of operands that are rounded to 8 bits and are bf16 still.
KernelOr MakeFloat8Matmul(const KernelContext& context) {
  const Tensor &a = context.in(0), &b = context.in(1);
  FT_ASSIGN_OR_RETURN(const Float8Operands rounded, ReadFloat8(context.attributes, a));
  FT_ASSIGN_OR_RETURN(const ProductShape shape,
                      CheckProduct(context.attributes, a, b, context.in(2), context.in(3), context.out(0)));
  FT_RETURN_IF_ERROR(CheckWorkspace(context.operands, Float8Workspace(shape.m, shape.n, shape.k)));
  Tensor a8 = a, b8 = b;
  a8.data = context.operands.workspace.data;
  b8.data = context.operands.workspace.as<char>() + Float8Operand(a.elements());
  FT_ASSIGN_OR_RETURN(const Product product,
                      MakeProduct(context, a8, b8, context.in(2), context.in(3), context.out(0)));
  const auto rounding = [](const Tensor& x, const ScaleBlocks& blocks, Float8 type, const Tensor& result) {
    return Float8Rounding{x.as<uint16_t>(), x.rows(), x.last(), blocks, type, result.as<uint16_t>()};
  };
  const Float8Rounding of_a = rounding(a, rounded.BlocksOfA(shape), rounded.a, a8);
  const Float8Rounding of_b = rounding(b, rounded.BlocksOfB(shape), rounded.b, b8);
  return MakeKernel([product, of_a, of_b] {
    of_a.Run(product.loops.float8, product.threads);
    of_b.Run(product.loops.float8, product.threads);
    product.Run();
  });
}

KernelOr MakeMatmul(const KernelContext& context) {
  FT_RETURN_IF_ERROR(CheckCounts(context.operands, 4, 1));
  if (RoundsToFloat8(context.attributes)) return MakeFloat8Matmul(context);
  FT_ASSIGN_OR_RETURN(const Product product, MakeProduct(context, context.in(0), context.in(1), context.in(2),
                                                         context.in(3), context.out(0)));
  return MakeKernel([product] { product.Run(); });
}

// The product, then the cluster on `in`.
KernelOr MakeThen(const KernelContext& context, const Product& product, std::vector<Tensor> in,
                  const Tensor& result) {
  const KernelOperands operands = {
      .in = std::move(in), .out = {result}, .workspace = context.operands.workspace};
  FT_ASSIGN_OR_RETURN(
      std::shared_ptr<Kernel> cluster,
      MakeCluster({context.loops, operands, context.attributes, context.num_threads, context.isa}));
  return MakeKernel([product, cluster = std::move(cluster)] {
    product.Run();
    static_cast<CpuKernel&>(*cluster).Run();
  });
}

KernelOr MakeMatmulGelu(const KernelContext& context) {
  FT_ASSIGN_OR_RETURN(const MatmulGeluOperands read, ReadMatmulGelu(context.operands));
  FT_ASSIGN_OR_RETURN(const Product product,
                      MakeProduct(context, read.a, read.b, read.bias, Tensor(), read.x));
  return MakeThen(context, product, {read.x}, read.result);
}

KernelOr MakeMatmulGeluGrad(const KernelContext& context) {
  FT_ASSIGN_OR_RETURN(const MatmulGeluGradOperands read, ReadMatmulGeluGrad(context.operands));
  FT_ASSIGN_OR_RETURN(const Product product,
                      MakeProduct(context, read.a, read.b, Tensor(), Tensor(), read.dx));
  return MakeThen(context, product, {read.x, read.dx}, read.dx);
}

KernelOr MakeMatmulBiasGrad(const KernelContext& context) {
  FT_ASSIGN_OR_RETURN(const MatmulBiasGradOperands read,
                      ReadMatmulBiasGrad(context.operands, context.attributes));
  FT_ASSIGN_OR_RETURN(const Product product,
                      MakeProduct(context, read.a, read.b, Tensor(), Tensor(), read.result));
  return MakeThen(context, product, {read.summed()}, read.sums);
}

}  // namespace

void RegisterMatmul(KernelRegistry& registry, Isa isa) {
  Add<MakeMatmul>(registry, "matmul", isa);
  Add<MakeMatmulGelu>(registry, "matmul_gelu", isa);
  Add<MakeMatmulGeluGrad>(registry, "matmul_gelu_grad", isa);
  Add<MakeMatmulBiasGrad>(registry, "matmul_bias_grad", isa);
}

}  // namespace ft::cpu
