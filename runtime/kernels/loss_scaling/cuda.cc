// loss_scale, update_scaler.
#include "runtime/backends/cuda/register.h"
#include "runtime/kernels/loss_scaling/cuda_device.h"
#include "runtime/kernels/loss_scaling/operands.h"

namespace ft::cuda {
namespace {

KernelOr MakeLossScale(const KernelContext& context) {
  FT_ASSIGN_OR_RETURN(const LossScaleOperands read, ReadLossScale(context.operands, context.attributes));
  return MakeKernel(
      [read](StreamHandle stream) { return StoreLossScale(read.scaler, read.factor, read.result, stream); });
}

KernelOr MakeUpdateScaler(const KernelContext& context) {
  FT_ASSIGN_OR_RETURN(const UpdateScalerOperands read,
                      ReadUpdateScaler(context.operands, context.attributes));
  if (!read.dynamic) return MakeKernel([](StreamHandle) { return 0; });
  ScalerPolicy policy;
  policy.growth_factor = read.growth_factor;
  policy.backoff_factor = read.backoff_factor;
  policy.min_scale = read.min_scale;
  policy.growth_interval = static_cast<float>(read.growth_interval);
  policy.hysteresis = static_cast<float>(read.hysteresis);
  return MakeKernel([=](StreamHandle stream) {
    return UpdateScaler(policy, read.coefficient, read.factor, read.scaler, stream);
  });
}

}  // namespace

void RegisterLossScaling(KernelTable& table) {
  table.Add("loss_scale", MakeLossScale);
  table.Add("update_scaler", MakeUpdateScaler);
}

}  // namespace ft::cuda
