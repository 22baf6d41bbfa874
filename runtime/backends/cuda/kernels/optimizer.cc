// adamw, adam, sgd; accumulate, drain; loss_scale, update_scaler.
#include "runtime/backends/cuda/routines/optimizer.h"

#include <vector>

#include "runtime/backends/cuda/register.h"
#include "runtime/backends/cuda/routines/accumulate.h"
#include "runtime/backends/cuda/routines/loss_scaling.h"
#include "runtime/device/parameter_operands.h"

namespace ft::cuda {
namespace {

UpdateArgs UpdateArgsOf(const ParameterOperands& o) {
  return {.gradient = o.gradient.data,
          .gradient_dtype = o.gradient.dtype,
          .parameter = o.parameter.data,
          .parameter_dtype = o.parameter.dtype,
          .states = {o.states[0], o.states[1]},
          .copy = o.working_copy.data,
          .copy_dtype = o.working_copy.dtype,
          .coefficient = o.coefficient,
          .lr = o.lr,
          .step = o.step,
          .rng = o.rng};
}

// In as few launches as there can be.
absl::StatusOr<std::vector<SegmentBatch>> BatchesOf(const std::vector<ParameterPart>& parts) {
  std::vector<SegmentBatch> batches(1);
  for (const ParameterPart& part : parts) {
    if (part.first != 0 && batches.front().count != 0)
      return absl::InvalidArgumentError("'segments' must be ascending and must not overlap");
    if (batches.back().Add(part.begin, part.end, part.first, part.decays, part.stream)) continue;
    batches.emplace_back();
    batches.back().Add(part.begin, part.end, part.first, part.decays, part.stream);
  }
  return batches;
}

// `routine` is Adam or Sgd.
template <typename Settings>
KernelOr MakeUpdate(const KernelContext& context, size_t states, const Settings& settings,
                    int (*routine)(const UpdateArgs&, const Settings&, const SegmentBatch&, StreamHandle)) {
  FT_ASSIGN_OR_RETURN(const ParameterOperands operands,
                      ReadParameterOperands(context.operands, context.attributes, states));
  FT_ASSIGN_OR_RETURN(std::vector<SegmentBatch> batches, BatchesOf(operands.parts));
  return MakeKernel(
      [args = UpdateArgsOf(operands), settings, routine, batches = std::move(batches)](StreamHandle stream) {
        for (const SegmentBatch& batch : batches) {
          if (const int error = routine(args, settings, batch, stream); error != 0) return error;
        }
        return 0;
      });
}

template <bool kDecoupled>
KernelOr MakeAdam(const KernelContext& context) {
  AdamSettings settings;
  FT_ASSIGN_OR_RETURN(settings.beta1, FloatIn(context.attributes, "beta1", 0.0, 1.0));
  FT_ASSIGN_OR_RETURN(settings.beta2, FloatIn(context.attributes, "beta2", 0.0, 1.0));
  FT_ASSIGN_OR_RETURN(settings.eps, FloatIn(context.attributes, "eps", 0.0));
  FT_ASSIGN_OR_RETURN(settings.weight_decay, FloatIn(context.attributes, "weight_decay"));
  settings.decoupled = kDecoupled;
  return MakeUpdate(context, 2, settings, Adam);
}

KernelOr MakeSgd(const KernelContext& context) {
  SgdSettings settings;
  FT_ASSIGN_OR_RETURN(settings.momentum, FloatIn(context.attributes, "momentum"));
  FT_ASSIGN_OR_RETURN(settings.weight_decay, FloatIn(context.attributes, "weight_decay"));
  FT_ASSIGN_OR_RETURN(settings.nesterov, Flag(context.attributes, "nesterov"));
  const bool buffered = settings.momentum != 0.0;
  if (settings.nesterov && !buffered) {
    return absl::InvalidArgumentError("'nesterov' takes a 'momentum' other than 0");
  }
  return MakeUpdate(context, buffered ? 1 : 0, settings, Sgd);
}

KernelOr MakeAccumulate(const KernelContext& context) {
  FT_RETURN_IF_ERROR(CheckCounts(context.operands, 1, 1));
  const Tensor &x = context.in(0), &state = context.out(0);
  FT_RETURN_IF_ERROR(CheckFloat(x, "x"));
  FT_RETURN_IF_ERROR(CheckSize(state, "state", x.elements(), x.dtype));
  const AccumulateArgs args = {x.data, state.data, nullptr, x.dtype, x.elements()};
  return MakeKernel([args](StreamHandle stream) { return Accumulate(args, stream); });
}

KernelOr MakeDrain(const KernelContext& context) {
  FT_RETURN_IF_ERROR(CheckCounts(context.operands, 1, 2));
  const Tensor &x = context.in(0), &y = context.out(0), &state = context.out(1);
  FT_RETURN_IF_ERROR(CheckFloat(x, "x"));
  FT_RETURN_IF_ERROR(CheckSize(y, "result", x.elements(), x.dtype));
  FT_RETURN_IF_ERROR(CheckSize(state, "state", x.elements(), x.dtype));
  const AccumulateArgs args = {x.data, state.data, y.data, x.dtype, x.elements()};
  return MakeKernel([args](StreamHandle stream) { return Drain(args, stream); });
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

void RegisterOptimizer(KernelTable& table) {
  table.Add("accumulate", MakeAccumulate);
  table.Add("adam", MakeAdam<false>);
  table.Add("adamw", MakeAdam<true>);
  table.Add("drain", MakeDrain);
  table.Add("loss_scale", MakeLossScale);
  table.Add("sgd", MakeSgd);
  table.Add("update_scaler", MakeUpdateScaler);
}

}  // namespace ft::cuda
