#include "runtime/kernels/loss_scaling/operands.h"

#include "runtime/base/status_macros.h"
#include "runtime/device/check.h"

namespace ft {
namespace {

constexpr int64_t kScalerElements = 3;
constexpr int64_t kMaxGrowthInterval = int64_t{1} << 24;  // f32 counts so far

}  // namespace

absl::StatusOr<LossScaleOperands> ReadLossScale(const KernelOperands& operands,
                                                const KernelAttributes& attributes) {
  FT_RETURN_IF_ERROR(CheckCounts(operands, 1, 1));
  FT_RETURN_IF_ERROR(CheckSize(operands.in[0], "scaler", kScalerElements));
  FT_RETURN_IF_ERROR(CheckSize(operands.out[0], "result", 1));
  FT_ASSIGN_OR_RETURN(const double factor, FloatIn(attributes, "factor"));
  return LossScaleOperands{operands.in[0].as<float>(), factor, operands.out[0].as<float>()};
}

absl::StatusOr<UpdateScalerOperands> ReadUpdateScaler(const KernelOperands& operands,
                                                      const KernelAttributes& attributes) {
  const bool counts = operands.in.size() == 2;
  FT_RETURN_IF_ERROR(CheckCounts(operands, counts ? 2 : 1, 1));
  FT_RETURN_IF_ERROR(CheckSize(operands.in[0], "coefficient", 1));
  if (counts) FT_RETURN_IF_ERROR(CheckSize(operands.in[1], "factor", 1));
  FT_RETURN_IF_ERROR(CheckSize(operands.out[0], "scaler", kScalerElements));
  UpdateScalerOperands read{};
  read.coefficient = operands.in[0].as<float>();
  read.factor = counts ? operands.in[1].as<float>() : nullptr;
  read.scaler = operands.out[0].as<float>();
  FT_ASSIGN_OR_RETURN(read.growth_factor, FloatIn(attributes, "growth_factor"));
  FT_ASSIGN_OR_RETURN(read.backoff_factor, FloatIn(attributes, "backoff_factor"));
  FT_ASSIGN_OR_RETURN(read.min_scale, FloatIn(attributes, "min_scale", 0.0));
  FT_ASSIGN_OR_RETURN(read.growth_interval, IntIn(attributes, "growth_interval", 1, kMaxGrowthInterval));
  FT_ASSIGN_OR_RETURN(read.hysteresis, IntIn(attributes, "hysteresis", 1, kMaxGrowthInterval));
  FT_ASSIGN_OR_RETURN(read.dynamic, Flag(attributes, "dynamic"));
  return read;
}

}  // namespace ft
