// layer_norm, rms_norm, their gradients, and both with the residual sum before them.
#include "runtime/backends/cuda/routines/norm.h"

#include "fmt/format.h"
#include "runtime/backends/cuda/register.h"
#include "runtime/base/cuda_workspace.h"

namespace ft::cuda {
namespace {

// What grids and the routines' int arithmetic on columns take.
absl::Status CheckExtents(const Tensor& x) {
  constexpr int64_t kMostRows = (int64_t{1} << 31) - 1, kMostColumns = int64_t{1} << 28;
  if (x.rows() <= kMostRows && x.last() <= kMostColumns) return absl::OkStatus();
  return absl::InvalidArgumentError(fmt::format("x must have at most {} rows of {} elements, got {} of {}",
                                                kMostRows, kMostColumns, x.rows(), x.last()));
}

// The norm of x to `result`, whose other operands begin at number `first`.
absl::StatusOr<NormArgs> ArgsOf(const KernelContext& context, const Tensor& x, size_t first, bool has_bias,
                                const Tensor& result) {
  const Tensor& weight = context.in(first);
  FT_RETURN_IF_ERROR(CheckExtents(x));
  FT_RETURN_IF_ERROR(CheckSize(weight, "weight", x.last(), x.dtype));
  if (has_bias) FT_RETURN_IF_ERROR(CheckSize(context.in(first + 1), "bias", x.last(), x.dtype));
  FT_RETURN_IF_ERROR(CheckSameShape(result, "result", x));
  FT_ASSIGN_OR_RETURN(const double eps, FloatIn(context.attributes, "eps", 0.0));
  NormArgs args;
  args.x = x.data;
  args.weight = weight.data;
  args.bias = has_bias ? context.in(first + 1).data : nullptr;
  args.result = result.data;
  args.dtype = x.dtype;
  args.rows = x.rows();
  args.columns = static_cast<int>(x.last());
  args.eps = static_cast<float>(eps);
  return args;
}

KernelOr MakeNorm(const KernelContext& context, bool has_bias) {
  FT_RETURN_IF_ERROR(CheckCounts(context.operands, has_bias ? 3 : 2, 1));
  FT_RETURN_IF_ERROR(CheckFloat(context.in(0), "x"));
  FT_ASSIGN_OR_RETURN(const NormArgs args, ArgsOf(context, context.in(0), 1, has_bias, context.out(0)));
  return MakeKernel([args](StreamHandle stream) { return Norm(args, stream); });
}

KernelOr MakeAddNorm(const KernelContext& context, bool has_bias) {
  FT_RETURN_IF_ERROR(CheckCounts(context.operands, has_bias ? 4 : 3, 2));
  const Tensor &a = context.in(0), &b = context.in(1), &sum = context.out(0);
  FT_RETURN_IF_ERROR(CheckFloat(a, "a"));
  FT_RETURN_IF_ERROR(CheckSameShape(b, "b", a));
  FT_RETURN_IF_ERROR(CheckSameShape(sum, "sum", a));
  AddNormArgs args;
  args.a = a.data;
  args.b = b.data;
  args.sum = sum.data;
  FT_ASSIGN_OR_RETURN(args.norm, ArgsOf(context, sum, 2, has_bias, context.out(1)));
  return MakeKernel([args](StreamHandle stream) { return AddNorm(args, stream); });
}

KernelOr MakeLayerNorm(const KernelContext& context) { return MakeNorm(context, true); }
KernelOr MakeRmsNorm(const KernelContext& context) { return MakeNorm(context, false); }
KernelOr MakeAddLayerNorm(const KernelContext& context) { return MakeAddNorm(context, true); }
KernelOr MakeAddRmsNorm(const KernelContext& context) { return MakeAddNorm(context, false); }

KernelOr MakeNormGrad(const KernelContext& context, bool has_bias) {
  const size_t results = has_bias ? 3 : 2;
  FT_RETURN_IF_ERROR(CheckCounts(context.operands, 3, results));
  const Tensor &dy = context.in(0), &x = context.in(1), &weight = context.in(2);
  FT_RETURN_IF_ERROR(CheckFloat(dy, "dy"));
  FT_RETURN_IF_ERROR(CheckExtents(dy));
  FT_RETURN_IF_ERROR(CheckSameShape(x, "x", dy));
  FT_RETURN_IF_ERROR(CheckSize(weight, "weight", x.last(), x.dtype));
  FT_RETURN_IF_ERROR(CheckSameShape(context.out(0), "dx", dy));
  for (size_t i = 1; i < results; ++i) {
    FT_RETURN_IF_ERROR(CheckFloatSize(context.out(i), i == 1 ? "dweight" : "dbias", x.last()));
  }
  FT_ASSIGN_OR_RETURN(const double eps, FloatIn(context.attributes, "eps", 0.0));
  const int64_t rows = x.rows(), columns = x.last();
  FT_RETURN_IF_ERROR(CheckWorkspace(context.operands, has_bias ? cuda_workspace::LayerNormGrad(rows, columns)
                                                               : cuda_workspace::RmsNormGrad(rows, columns)));
  NormGradArgs args;
  args.dy = dy.data;
  args.x = x.data;
  args.weight = weight.data;
  args.dx = context.out(0).data;
  args.dtype = x.dtype;
  args.dweight = context.out(1).data;
  args.dweight_dtype = context.out(1).dtype;
  args.dbias = has_bias ? context.out(2).data : nullptr;
  args.dbias_dtype = has_bias ? context.out(2).dtype : DType::kF32;
  args.rows = rows;
  args.columns = static_cast<int>(columns);
  args.eps = static_cast<float>(eps);
  args.blocks = cuda_workspace::NormGradBlocks(rows, columns);
  args.partials = context.operands.workspace.as<float>();
  args.shared_bytes = context.properties.shared_bytes_per_block;
  return MakeKernel([args](StreamHandle stream) { return NormGrad(args, stream); });
}

KernelOr MakeLayerNormGrad(const KernelContext& context) { return MakeNormGrad(context, true); }
KernelOr MakeRmsNormGrad(const KernelContext& context) { return MakeNormGrad(context, false); }

}  // namespace

void RegisterNorm(KernelTable& table) {
  table.Add("add_layer_norm", MakeAddLayerNorm);
  table.Add("add_rms_norm", MakeAddRmsNorm);
  table.Add("layer_norm", MakeLayerNorm);
  table.Add("layer_norm_grad", MakeLayerNormGrad);
  table.Add("rms_norm", MakeRmsNorm);
  table.Add("rms_norm_grad", MakeRmsNormGrad);
}

}  // namespace ft::cuda
