// accumulate, accumulated; loss_scale, update_scaler.
#include "runtime/backends/cuda/register.h"
#include "runtime/backends/cuda/routines/accumulate.h"
#include "runtime/backends/cuda/routines/loss_scaling.h"

namespace ft::cuda {
namespace {

KernelOr MakeAccumulate(const KernelContext& context) {
  FT_RETURN_IF_ERROR(CheckCounts(context.operands, 1, 1));
  const Tensor &x = context.in(0), &state = context.out(0);
  FT_RETURN_IF_ERROR(CheckFloat(x, "x"));
  FT_RETURN_IF_ERROR(CheckSize(state, "state", x.elements(), x.dtype));
  const AccumulateArgs args = {x.data, state.data, nullptr, x.dtype, x.elements()};
  return MakeKernel([args](StreamHandle stream) { return Accumulate(args, stream); });
}

KernelOr MakeAccumulated(const KernelContext& context) {
  FT_RETURN_IF_ERROR(CheckCounts(context.operands, 1, 2));
  const Tensor &x = context.in(0), &y = context.out(0), &state = context.out(1);
  FT_RETURN_IF_ERROR(CheckFloat(x, "x"));
  FT_RETURN_IF_ERROR(CheckSize(y, "result", x.elements(), x.dtype));
  FT_RETURN_IF_ERROR(CheckSize(state, "state", x.elements(), x.dtype));
  const AccumulateArgs args = {x.data, state.data, y.data, x.dtype, x.elements()};
  return MakeKernel([args](StreamHandle stream) { return Accumulated(args, stream); });
}

constexpr int64_t kScalerElements = 3;
constexpr int64_t kMaxGrowthInterval = int64_t{1} << 24;  // f32 counts so far

KernelOr MakeLossScale(const KernelContext& context) {
  FT_RETURN_IF_ERROR(CheckCounts(context.operands, 1, 1));
  FT_RETURN_IF_ERROR(CheckSize(context.in(0), "scaler", kScalerElements));
  FT_RETURN_IF_ERROR(CheckSize(context.out(0), "result", 1));
  FT_ASSIGN_OR_RETURN(const double factor, FloatIn(context.attributes, "factor"));
  return MakeKernel([factor, scaler = context.in(0).as<float>(), result = context.out(0).as<float>()](
                        StreamHandle stream) { return StoreLossScale(scaler, factor, result, stream); });
}

KernelOr MakeUpdateScaler(const KernelContext& context) {
  FT_RETURN_IF_ERROR(CheckCounts(context.operands, 1, 1));
  FT_RETURN_IF_ERROR(CheckSize(context.in(0), "coefficient", 1));
  FT_RETURN_IF_ERROR(CheckSize(context.out(0), "scaler", kScalerElements));
  ScalerPolicy policy;
  const KernelAttributes& attributes = context.attributes;
  FT_ASSIGN_OR_RETURN(policy.growth_factor, FloatIn(attributes, "growth_factor"));
  FT_ASSIGN_OR_RETURN(policy.backoff_factor, FloatIn(attributes, "backoff_factor"));
  FT_ASSIGN_OR_RETURN(policy.min_scale, FloatIn(attributes, "min_scale", 0.0));
  FT_ASSIGN_OR_RETURN(const int64_t growth_interval,
                      IntIn(attributes, "growth_interval", 1, kMaxGrowthInterval));
  FT_ASSIGN_OR_RETURN(const int64_t hysteresis, IntIn(attributes, "hysteresis", 1, kMaxGrowthInterval));
  policy.growth_interval = static_cast<float>(growth_interval);
  policy.hysteresis = static_cast<float>(hysteresis);
  FT_ASSIGN_OR_RETURN(const bool dynamic, Flag(attributes, "dynamic"));
  return MakeKernel([policy, dynamic, coefficient = context.in(0).as<float>(),
                     scaler = context.out(0).as<float>()](StreamHandle stream) {
    return dynamic ? UpdateScaler(policy, coefficient, scaler, stream) : 0;
  });
}

}  // namespace

void RegisterSteps(KernelTable& table) {
  table.Add("accumulate", MakeAccumulate);
  table.Add("accumulated", MakeAccumulated);
  table.Add("loss_scale", MakeLossScale);
  table.Add("update_scaler", MakeUpdateScaler);
}

}  // namespace ft::cuda
