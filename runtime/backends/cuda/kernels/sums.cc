// sum_squares, clip_coefficient and found_inf.
#include "runtime/backends/cuda/routines/sums.h"

#include "fmt/format.h"
#include "runtime/backends/cuda/register.h"
#include "runtime/base/cuda_workspace.h"
#include "runtime/base/flat_layout.h"

namespace ft::cuda {
namespace {

KernelOr MakeSumSquares(const KernelContext& context) {
  FT_RETURN_IF_ERROR(CheckCounts(context.operands, 2, 1));
  const Tensor &gradient = context.in(0), &acc = context.in(1), &sum = context.out(0);
  FT_RETURN_IF_ERROR(CheckFloat(gradient, "gradient"));
  FT_RETURN_IF_ERROR(CheckSize(sum, "sum", kAccumulatorWords, DType::kI64));
  if (acc.present()) FT_RETURN_IF_ERROR(CheckSize(acc, "acc", kAccumulatorWords, DType::kI64));
  if (gradient.flat_begin % kBlockElements != 0) {
    return absl::InvalidArgumentError(fmt::format("a slice must begin at a multiple of {}", kBlockElements));
  }
  const SumSquaresArgs args = {gradient.data, gradient.dtype, gradient.elements(), acc.as<int64_t>(),
                               sum.as<int64_t>()};
  return MakeKernel([args](StreamHandle stream) { return SumSquares(args, stream); });
}

// The short form is ft.clip_coefficient without loss and scaler.
KernelOr MakeClipCoefficient(const KernelContext& context) {
  const bool short_form = context.operands.in.size() == 1;
  FT_RETURN_IF_ERROR(CheckCounts(context.operands, short_form ? 1 : 3, 2));
  const Tensor loss = short_form ? Tensor{} : context.in(1), scaler = short_form ? Tensor{} : context.in(2);
  FT_RETURN_IF_ERROR(CheckSize(context.in(0), "sum", kAccumulatorWords, DType::kI64));
  if (loss.present()) FT_RETURN_IF_ERROR(CheckSize(loss, "loss", 1));
  if (scaler.present()) FT_RETURN_IF_ERROR(CheckSize(scaler, "scaler", 3));
  FT_RETURN_IF_ERROR(CheckSize(context.out(0), "norm", 1));
  FT_RETURN_IF_ERROR(CheckSize(context.out(1), "coefficient", 1));
  FT_ASSIGN_OR_RETURN(const double max_norm, FloatIn(context.attributes, "max_norm", 0.0));
  const ClipCoefficientArgs args = {context.in(0).as<int64_t>(), loss.as<float>(),
                                    scaler.as<float>(),          max_norm,
                                    context.out(0).as<float>(),  context.out(1).as<float>()};
  return MakeKernel([args](StreamHandle stream) { return ClipCoefficient(args, stream); });
}

KernelOr MakeFoundInf(const KernelContext& context) {
  FT_RETURN_IF_ERROR(CheckCounts(context.operands, 3, 1));
  const Tensor &x = context.in(0), &rng = context.in(1), &acc = context.in(2), &bitmap = context.out(0);
  FT_RETURN_IF_ERROR(CheckFloat(x, "x"));
  FT_RETURN_IF_ERROR(CheckSize(rng, "rng", 3, DType::kI64));
  if (acc.present()) FT_RETURN_IF_ERROR(CheckSize(acc, "acc", kFoundInfWords, DType::kI64));
  FT_RETURN_IF_ERROR(CheckAccumulator(acc, bitmap));
  FT_RETURN_IF_ERROR(CheckSize(bitmap, "bitmap", kFoundInfWords, DType::kI64));
  // In a world of one there is nobody else whose gradient it could be: the norm tells all.
  const bool alone = context.world_size == 1 && x.elements() > 1;
  const FoundInfArgs args = {alone ? nullptr : x.data, x.dtype,        x.elements(),
                             rng.as<int64_t>(),        !acc.present(), bitmap.as<int64_t>()};
  return MakeKernel([args](StreamHandle stream) { return FoundInf(args, stream); });
}

}  // namespace

void RegisterSums(KernelTable& table) {
  table.Add("clip_coefficient", MakeClipCoefficient);
  table.Add("found_inf", MakeFoundInf);
  table.Add("sum_squares", MakeSumSquares);
}

}  // namespace ft::cuda
