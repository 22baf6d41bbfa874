// matmul_gelu, matmul_gelu_grad, matmul_bias_grad: the library's product with an epilogue where that is
// faster (Products::Fuse), else the product and then the cluster: of GELU, or of the product by its
// derivative, on its rounded result; of sums on its operand.
#include <utility>
#include <vector>

#include "fmt/format.h"
#include "runtime/backends/cuda/register.h"
#include "runtime/kernels/cluster/cuda.h"
#include "runtime/kernels/matmul/cuda.h"
#include "runtime/kernels/matmul/operands.h"

namespace ft::cuda {
namespace {

constexpr uintptr_t kLibraryAlignment = 16;

bool IsAligned(const Tensor& tensor) {
  return reinterpret_cast<uintptr_t>(tensor.data) % kLibraryAlignment == 0;
}

// `product` and then the cluster from `in` to `out`; or the library's product that does both, of `product`
// with `epilogue`, `auxiliary` and `sums` into `result`.
struct Fusion {
  MatmulOperands product;
  std::vector<Tensor> in;
  Tensor out;
  Epilogue epilogue;
  Tensor auxiliary, sums;  // may be absent
  Tensor result;
  const char* name;  // of what comes with the product
};

KernelOr MakeFused(const KernelContext& context, const Fusion& f) {
  const KernelOperands then = {.in = f.in, .out = {f.out}, .workspace = context.operands.workspace};
  FT_ASSIGN_OR_RETURN(
      std::shared_ptr<Kernel> cluster,
      MakeCluster({then, context.attributes, context.properties, context.products, context.attention,
                   context.attention_choice, context.code, context.deterministic, context.notes}));
  FT_ASSIGN_OR_RETURN(std::shared_ptr<Kernel> product, MakeProduct(context, f.product));
  auto apart = [product = std::move(product), cluster = std::move(cluster)](StreamHandle stream) {
    const int error = static_cast<CudaKernel&>(*product).Launch(stream);
    return error != 0 ? error : static_cast<CudaKernel&>(*cluster).Launch(stream);
  };
  ProductSpec spec = f.product.spec;
  spec.epilogue = f.epilogue;
  spec.auxiliary = f.auxiliary.present();
  ProductOperands operands = f.product.addresses();
  operands.c = f.result.data;
  operands.auxiliary = f.auxiliary.data;
  operands.sums = f.sums.data;
  std::shared_ptr<Product> fused;
  if (spec.m > 0 && spec.n > 0 && IsAligned(f.product.bias) && IsAligned(f.auxiliary) && IsAligned(f.sums)) {
    FT_ASSIGN_OR_RETURN(fused, context.products.Fuse(
                                   spec, operands, static_cast<uint64_t>(f.product.workspace_bytes), apart));
  }
  if (fused == nullptr) return MakeKernel(std::move(apart));
  context.Note(fmt::format("product [{}, {}] x [{}, {}] of {} with {}: cuBLASLt's epilogue", spec.m, spec.k,
                           spec.k, spec.n, Name(spec.input), f.name));
  return MakeKernel(
      [operands, fused = std::move(fused)](StreamHandle stream) { return fused->Launch(operands, stream); });
}

KernelOr MakeMatmulGelu(const KernelContext& context) {
  FT_ASSIGN_OR_RETURN(const MatmulGeluOperands read, ReadMatmulGelu(context.operands));
  FT_ASSIGN_OR_RETURN(const MatmulOperands product,
                      ReadProduct(context, read.a, read.b, read.bias, Tensor(), read.x));
  return MakeFused(context, {.product = product,
                             .in = {read.x},
                             .out = read.result,
                             .epilogue = Epilogue::kGelu,
                             .auxiliary = read.keeps_x ? read.x : Tensor(),
                             .sums = {},
                             .result = read.result,
                             .name = "GELU"});
}

KernelOr MakeMatmulGeluGrad(const KernelContext& context) {
  FT_ASSIGN_OR_RETURN(const MatmulGeluGradOperands read, ReadMatmulGeluGrad(context.operands));
  FT_ASSIGN_OR_RETURN(const MatmulOperands product,
                      ReadProduct(context, read.a, read.b, Tensor(), Tensor(), read.dx));
  return MakeFused(context, {.product = product,
                             .in = {read.x, read.dx},
                             .out = read.dx,
                             .epilogue = Epilogue::kGeluGrad,
                             .auxiliary = read.x,
                             .sums = {},
                             .result = read.dx,
                             .name = "GELU's gradient"});
}

KernelOr MakeMatmulBiasGrad(const KernelContext& context) {
  FT_ASSIGN_OR_RETURN(const MatmulBiasGradOperands read,
                      ReadMatmulBiasGrad(context.operands, context.attributes));
  FT_ASSIGN_OR_RETURN(const MatmulOperands product,
                      ReadProduct(context, read.a, read.b, Tensor(), Tensor(), read.result));
  return MakeFused(context,
                   {.product = product,
                    .in = {read.summed()},
                    .out = read.sums,
                    .epilogue = read.of_a ? Epilogue::kSumsOfA : Epilogue::kSumsOfB,
                    .auxiliary = {},
                    .sums = read.sums,
                    .result = read.result,
                    .name = read.of_a ? "the sums of its left operand" : "the sums of its right operand"});
}

}  // namespace

void RegisterMatmulEpilogues(KernelTable& table) {
  table.Add("matmul_gelu", MakeMatmulGelu);
  table.Add("matmul_gelu_grad", MakeMatmulGeluGrad);
  table.Add("matmul_bias_grad", MakeMatmulBiasGrad);
}

}  // namespace ft::cuda
