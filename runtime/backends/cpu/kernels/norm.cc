// layer_norm, rms_norm, their gradients, and both with the residual sum before them.
#include "runtime/backends/cpu/routines/norm.h"

#include "runtime/backends/cpu/kernel_base.h"
#include "runtime/backends/cpu/register.h"
#include "runtime/backends/cpu/routines/elementwise.h"
#include "runtime/backends/cpu/routines/rows.h"
#include "runtime/backends/cpu/row_blocks.h"
#include "runtime/base/workspace.h"

namespace ft::cpu {
namespace {

// The norm of x to `result`, whose other operands begin at number `first`.
absl::StatusOr<NormArgs> NormArgsOf(const KernelContext& context, const Tensor& x, size_t first,
                                    bool has_bias, const Tensor& result) {
  const Tensor& weight = context.in(first);
  FT_RETURN_IF_ERROR(CheckSize(weight, "weight", x.last(), x.dtype));
  if (has_bias) FT_RETURN_IF_ERROR(CheckSize(context.in(first + 1), "bias", x.last(), x.dtype));
  FT_RETURN_IF_ERROR(CheckSameShape(result, "result", x));
  FT_ASSIGN_OR_RETURN(const double eps, FloatIn(context.attributes, "eps", 0.0));
  return NormArgs{x.data,      weight.data, has_bias ? context.in(first + 1).data : nullptr,
                  result.data, x.last(),    static_cast<float>(eps)};
}

using NormRoutine = void (*)(const NormArgs&, int64_t, int64_t);

KernelOr MakeNorm(const KernelContext& context, bool has_bias, const NormRoutine (&routines)[kFloatTypes]) {
  FT_RETURN_IF_ERROR(CheckCounts(context.operands, has_bias ? 3 : 2, 1));
  const Tensor& x = context.in(0);
  FT_RETURN_IF_ERROR(CheckFloat(x, "x"));
  FT_ASSIGN_OR_RETURN(const NormArgs args, NormArgsOf(context, x, 1, has_bias, context.out(0)));
  return MakeRowwise(routines[FloatIndex(x.dtype)], args, x.rows(), x.last(), context.num_threads);
}

// The routines of add and of the norm, on a few rows at a time: the norm finds the sum in the cache.
KernelOr MakeAddNorm(const KernelContext& context, bool has_bias,
                     const NormRoutine (&routines)[kFloatTypes]) {
  FT_RETURN_IF_ERROR(CheckCounts(context.operands, has_bias ? 4 : 3, 2));
  const Tensor &a = context.in(0), &b = context.in(1), &sum = context.out(0);
  FT_RETURN_IF_ERROR(CheckFloat(a, "a"));
  FT_RETURN_IF_ERROR(CheckSameShape(b, "b", a));
  FT_RETURN_IF_ERROR(CheckSameShape(sum, "sum", a));
  FT_ASSIGN_OR_RETURN(const NormArgs norm, NormArgsOf(context, sum, 2, has_bias, context.out(1)));
  const BinaryArgs sums = {a.data, b.data, sum.data, a.elements()};
  const int64_t columns = a.last();
  auto run = [=, add = context.routines.elementwise.add[FloatIndex(a.dtype)],
              normalise = routines[FloatIndex(a.dtype)]](int64_t begin, int64_t end) {
    add(sums, begin * columns, end * columns);
    normalise(norm, begin, end);
  };
  return MakeRowwise(run, a.rows(), columns, context.num_threads);
}

KernelOr MakeLayerNorm(const KernelContext& context) {
  return MakeNorm(context, true, context.routines.norm.layer_norm);
}
KernelOr MakeRmsNorm(const KernelContext& context) {
  return MakeNorm(context, false, context.routines.norm.rms_norm);
}
KernelOr MakeAddLayerNorm(const KernelContext& context) {
  return MakeAddNorm(context, true, context.routines.norm.layer_norm);
}
KernelOr MakeAddRmsNorm(const KernelContext& context) {
  return MakeAddNorm(context, false, context.routines.norm.rms_norm);
}

absl::StatusOr<NormGradArgs> GradArgs(const KernelContext& context, size_t results) {
  FT_RETURN_IF_ERROR(CheckCounts(context.operands, 3, results));
  const Tensor &dy = context.in(0), &x = context.in(1), &weight = context.in(2);
  FT_RETURN_IF_ERROR(CheckFloat(dy, "dy"));
  FT_RETURN_IF_ERROR(CheckSameShape(x, "x", dy));
  FT_RETURN_IF_ERROR(CheckSize(weight, "weight", x.last(), x.dtype));
  FT_RETURN_IF_ERROR(CheckSameShape(context.out(0), "dx", dy));
  for (size_t i = 1; i < results; ++i) {
    FT_RETURN_IF_ERROR(CheckFloatSize(context.out(i), i == 1 ? "dweight" : "dbias", x.last()));
  }
  FT_ASSIGN_OR_RETURN(const double eps, FloatIn(context.attributes, "eps", 0.0));
  return NormGradArgs{dy.data, x.data, weight.data, context.out(0).data, x.last(), static_cast<float>(eps)};
}

// Partials lie as [block][weight, bias][columns], so that both are summed as one row of 2 * columns.
KernelOr MakeLayerNormGrad(const KernelContext& context) {
  FT_ASSIGN_OR_RETURN(const NormGradArgs args, GradArgs(context, 3));
  const int64_t columns = args.columns, rows = context.in(0).rows();
  FT_RETURN_IF_ERROR(CheckWorkspace(context.operands, LayerNormGradWorkspace(columns)));
  const RowBlocks blocks(rows);
  const int threads = ThreadsFor(context.num_threads, rows * columns);
  float* partials = context.operands.workspace.as<float>();
  const Tensor &dweight = context.out(1), &dbias = context.out(2);
  return MakeKernel([=, &routines = context.routines,
                     grad = context.routines.norm.layer_norm_grad[FloatIndex(context.in(0).dtype)]] {
    ParallelFor(blocks.count, threads, [&](int64_t p) {
      float* partial = partials + p * 2 * columns;
      grad(args, partial, partial + columns, blocks.Begin(p), blocks.Begin(p + 1));
    });
    SumPartials(routines, partials, blocks.count, 2 * columns, 0, columns, dweight);
    SumPartials(routines, partials + columns, blocks.count, 2 * columns, 0, columns, dbias);
  });
}

KernelOr MakeRmsNormGrad(const KernelContext& context) {
  FT_ASSIGN_OR_RETURN(const NormGradArgs args, GradArgs(context, 2));
  const int64_t columns = args.columns, rows = context.in(0).rows();
  FT_RETURN_IF_ERROR(CheckWorkspace(context.operands, RmsNormGradWorkspace(columns)));
  const RowBlocks blocks(rows);
  const int threads = ThreadsFor(context.num_threads, rows * columns);
  float* partials = context.operands.workspace.as<float>();
  const Tensor& dweight = context.out(1);
  return MakeKernel([=, &routines = context.routines,
                     grad = context.routines.norm.rms_norm_grad[FloatIndex(context.in(0).dtype)]] {
    ParallelFor(blocks.count, threads,
                [&](int64_t p) { grad(args, partials + p * columns, blocks.Begin(p), blocks.Begin(p + 1)); });
    SumPartials(routines, partials, blocks.count, columns, 0, columns, dweight);
  });
}

}  // namespace

void RegisterNorm(KernelRegistry& registry, Isa isa) {
  Add<MakeAddLayerNorm>(registry, "add_layer_norm", isa);
  Add<MakeAddRmsNorm>(registry, "add_rms_norm", isa);
  Add<MakeLayerNorm>(registry, "layer_norm", isa);
  Add<MakeLayerNormGrad>(registry, "layer_norm_grad", isa);
  Add<MakeRmsNorm>(registry, "rms_norm", isa);
  Add<MakeRmsNormGrad>(registry, "rms_norm_grad", isa);
}

}  // namespace ft::cpu
