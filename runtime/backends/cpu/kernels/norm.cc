// layer_norm, rms_norm and their gradients.
#include "runtime/backends/cpu/routines/norm.h"

#include "runtime/backends/cpu/kernel_base.h"
#include "runtime/backends/cpu/register.h"
#include "runtime/backends/cpu/routines/rows.h"
#include "runtime/backends/cpu/row_blocks.h"
#include "runtime/base/workspace.h"

namespace ft::cpu {
namespace {

KernelOr MakeNorm(const KernelContext& context, bool has_bias,
                  void (*routine)(const NormArgs&, int64_t, int64_t)) {
  FT_RETURN_IF_ERROR(CheckCounts(context.operands, has_bias ? 3 : 2, 1));
  const Tensor &x = context.in(0), &weight = context.in(1), &r = context.out(0);
  FT_RETURN_IF_ERROR(CheckPresent(x, "x"));
  FT_RETURN_IF_ERROR(CheckSize(weight, "weight", x.last()));
  if (has_bias) FT_RETURN_IF_ERROR(CheckSize(context.in(2), "bias", x.last()));
  FT_RETURN_IF_ERROR(CheckSameShape(r, "result", x));
  FT_ASSIGN_OR_RETURN(const double eps, context.attributes.Float("eps"));
  const NormArgs args = {x.as<float>(), weight.as<float>(), has_bias ? context.in(2).as<float>() : nullptr,
                         r.as<float>(), x.last(),           static_cast<float>(eps)};
  return MakeRowwise(routine, args, x.rows(), x.last(), context.num_threads);
}

KernelOr MakeLayerNorm(const KernelContext& context) {
  return MakeNorm(context, true, context.routines.norm.layer_norm);
}
KernelOr MakeRmsNorm(const KernelContext& context) {
  return MakeNorm(context, false, context.routines.norm.rms_norm);
}

absl::StatusOr<NormGradArgs> GradArgs(const KernelContext& context, size_t results) {
  FT_RETURN_IF_ERROR(CheckCounts(context.operands, 3, results));
  const Tensor &dy = context.in(0), &x = context.in(1), &weight = context.in(2);
  FT_RETURN_IF_ERROR(CheckPresent(dy, "dy"));
  FT_RETURN_IF_ERROR(CheckSameShape(x, "x", dy));
  FT_RETURN_IF_ERROR(CheckSize(weight, "weight", x.last()));
  FT_RETURN_IF_ERROR(CheckSameShape(context.out(0), "dx", dy));
  for (size_t i = 1; i < results; ++i) {
    FT_RETURN_IF_ERROR(CheckSize(context.out(i), i == 1 ? "dweight" : "dbias", x.last()));
  }
  FT_ASSIGN_OR_RETURN(const double eps, context.attributes.Float("eps"));
  return NormGradArgs{dy.as<float>(), x.as<float>(),          weight.as<float>(), context.out(0).as<float>(),
                      x.last(),       static_cast<float>(eps)};
}

// Partials lie as [block][weight, bias][columns], so that both are summed as one row of 2 * columns.
KernelOr MakeLayerNormGrad(const KernelContext& context) {
  FT_ASSIGN_OR_RETURN(const NormGradArgs args, GradArgs(context, 3));
  const int64_t columns = args.columns, rows = context.in(0).rows();
  FT_RETURN_IF_ERROR(CheckWorkspace(context.operands, LayerNormGradWorkspace(columns)));
  const RowBlocks blocks(rows);
  const int threads = ThreadsFor(context.num_threads, rows * columns);
  float* partials = context.operands.workspace.as<float>();
  float *dweight = context.out(1).as<float>(), *dbias = context.out(2).as<float>();
  return MakeKernel([=, &routines = context.routines] {
    ParallelFor(blocks.count, threads, [&](int64_t p) {
      float* partial = partials + p * 2 * columns;
      routines.norm.layer_norm_grad(args, partial, partial + columns, blocks.Begin(p), blocks.Begin(p + 1));
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
  float* dweight = context.out(1).as<float>();
  return MakeKernel([=, &routines = context.routines] {
    ParallelFor(blocks.count, threads, [&](int64_t p) {
      routines.norm.rms_norm_grad(args, partials + p * columns, blocks.Begin(p), blocks.Begin(p + 1));
    });
    SumPartials(routines, partials, blocks.count, columns, 0, columns, dweight);
  });
}

}  // namespace

void RegisterNorm(KernelRegistry& registry, Isa isa) {
  Add<MakeLayerNorm>(registry, "layer_norm", isa);
  Add<MakeLayerNormGrad>(registry, "layer_norm_grad", isa);
  Add<MakeRmsNorm>(registry, "rms_norm", isa);
  Add<MakeRmsNormGrad>(registry, "rms_norm_grad", isa);
}

}  // namespace ft::cpu
