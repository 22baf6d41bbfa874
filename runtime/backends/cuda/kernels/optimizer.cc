// adamw, adam, sgd; accumulate, drain; loss_scale, update_scaler.
#include "runtime/backends/cuda/routines/optimizer.h"

#include <algorithm>
#include <vector>

#include "fmt/format.h"
#include "runtime/backends/cuda/register.h"
#include "runtime/backends/cuda/routines/accumulate.h"
#include "runtime/backends/cuda/routines/loss_scaling.h"
#include "runtime/base/philox.h"

namespace ft::cuda {
namespace {

absl::Status CheckParameter(const KernelContext& context, size_t states) {
  const Tensor& parameter = context.out(0);
  FT_RETURN_IF_ERROR(CheckFloatSize(parameter, "parameter", context.in(0).elements()));
  if (parameter.dtype == DType::kF32) return absl::OkStatus();
  if (parameter.dtype != DType::kBF16)
    return absl::InvalidArgumentError("parameter must be f32 or, without a master, bf16");
  if (context.operands.out.size() == 2 + states && context.out(1 + states).present())
    return absl::InvalidArgumentError("a bf16 parameter has no working copy");
  return absl::OkStatus();
}

absl::Status CheckUpdateOperands(const KernelContext& context, size_t states) {
  const size_t operands = context.operands.in.size(), results = context.operands.out.size();
  if ((operands != 4 && operands != 5) || (results != 1 + states && results != 2 + states)) {
    return absl::InvalidArgumentError(fmt::format("takes 4 or 5 operands and {} or {} results, got {} and {}",
                                                  1 + states, 2 + states, operands, results));
  }
  const Tensor& gradient = context.in(0);
  FT_RETURN_IF_ERROR(CheckFloat(gradient, "gradient"));
  FT_RETURN_IF_ERROR(CheckSize(context.in(1), "coefficient", 1));
  FT_RETURN_IF_ERROR(CheckSize(context.in(2), "lr", 1));
  FT_RETURN_IF_ERROR(CheckSize(context.in(3), "step", 1, DType::kI64));
  FT_RETURN_IF_ERROR(CheckParameter(context, states));
  for (size_t i = 1; i <= states; ++i) {
    FT_RETURN_IF_ERROR(CheckSize(context.out(i), fmt::format("state {}", i), gradient.elements()));
  }
  return absl::OkStatus();
}

// Streams of stochastic rounding, one for each segment; empty where it rounds to nearest.
absl::StatusOr<std::vector<int64_t>> ReadRounding(const KernelContext& context) {
  if (!context.attributes.Has("stochastic_rounding")) return std::vector<int64_t>();
  if (context.out(0).dtype != DType::kBF16)
    return absl::InvalidArgumentError("'stochastic_rounding' takes a parameter in bf16");
  if (context.operands.in.size() != 5)
    return absl::InvalidArgumentError("'stochastic_rounding' takes an operand rng");
  FT_RETURN_IF_ERROR(CheckSize(context.in(4), "rng", 3, DType::kI64));
  return context.attributes.Ints("stochastic_rounding");
}

// In gradient (f32, bf16 or f16), coefficient, lr, step and, for stochastic rounding, rng; out parameter (f32
// or bf16), `states` states (f32) and, where the plan has one, a working copy of an f32 parameter (bf16 or
// f16).
absl::StatusOr<UpdateArgs> ReadUpdate(const KernelContext& context, size_t states) {
  FT_RETURN_IF_ERROR(CheckUpdateOperands(context, states));
  const Tensor& gradient = context.in(0);
  UpdateArgs args = {};
  args.gradient = gradient.data;
  args.gradient_dtype = gradient.dtype;
  args.parameter = context.out(0).data;
  args.parameter_dtype = context.out(0).dtype;
  for (size_t i = 0; i < states; ++i) args.states[i] = context.out(1 + i).as<float>();
  args.coefficient = context.in(1).as<float>();
  args.lr = context.in(2).as<float>();
  args.step = context.in(3).as<int64_t>();
  if (context.attributes.Has("stochastic_rounding")) args.rng = context.in(4).as<int64_t>();
  const Tensor copy = context.operands.out.size() == 2 + states ? context.out(1 + states) : Tensor{};
  if (copy.present()) {
    FT_RETURN_IF_ERROR(CheckFloatSize(copy, "working copy", gradient.elements()));
    if (copy.dtype == DType::kF32) {
      return absl::InvalidArgumentError("working copy must be bf16 or f16: in f32 the parameter is its own");
    }
    args.copy = copy.data;
    args.copy_dtype = copy.dtype;
  }
  return args;
}

// `segments` lists begin, end (in elements of the unit) and whether weight decay applies, for every
// parameter. The parts inside this slice, in as few launches as there can be.
absl::StatusOr<std::vector<SegmentBatch>> ReadSegments(const KernelContext& context) {
  FT_ASSIGN_OR_RETURN(const std::vector<int64_t> segments, context.attributes.Ints("segments"));
  FT_ASSIGN_OR_RETURN(const std::vector<int64_t> streams, ReadRounding(context));
  if (segments.size() % 3 != 0) {
    return absl::InvalidArgumentError("'segments' must be triples: begin, end, decay");
  }
  if (!streams.empty() && streams.size() != segments.size() / 3) {
    return absl::InvalidArgumentError(fmt::format("'stochastic_rounding' must have {} streams, got {}",
                                                  segments.size() / 3, streams.size()));
  }
  const int64_t flat_begin = context.out(0).flat_begin, elements = context.in(0).elements();
  std::vector<SegmentBatch> batches(1);
  for (size_t i = 0; i < segments.size(); i += 3) {
    const int64_t begin = std::max<int64_t>(0, segments[i] - flat_begin);
    const int64_t end = std::min(elements, segments[i + 1] - flat_begin);
    if (begin >= end) continue;
    const int64_t skipped = begin + flat_begin - segments[i];
    if (!streams.empty() && skipped % 4 != 0) {
      return absl::InvalidArgumentError("the slice must begin at a multiple of 4 elements of the parameter");
    }
    if (skipped != 0 && batches.front().count != 0)
      return absl::InvalidArgumentError("'segments' must be ascending and must not overlap");
    const bool decays = segments[i + 2] != 0;
    const uint32_t stream =
        kFirstRoundingStream + static_cast<uint32_t>(streams.empty() ? 0 : streams[i / 3]);
    if (batches.back().Add(begin, end, skipped, decays, stream)) continue;
    batches.emplace_back();
    batches.back().Add(begin, end, skipped, decays, stream);
  }
  return batches;
}

// `routine` is Adam or Sgd.
template <typename Settings>
KernelOr MakeUpdate(const KernelContext& context, size_t states, const Settings& settings,
                    int (*routine)(const UpdateArgs&, const Settings&, const SegmentBatch&, StreamHandle)) {
  FT_ASSIGN_OR_RETURN(const UpdateArgs args, ReadUpdate(context, states));
  FT_ASSIGN_OR_RETURN(std::vector<SegmentBatch> batches, ReadSegments(context));
  return MakeKernel([args, settings, routine, batches = std::move(batches)](StreamHandle stream) {
    for (const SegmentBatch& batch : batches) {
      if (const int error = routine(args, settings, batch, stream); error != 0) return error;
    }
    return 0;
  });
}

template <bool kDecoupled>
KernelOr MakeAdam(const KernelContext& context) {
  AdamSettings settings;
  FT_ASSIGN_OR_RETURN(settings.beta1, context.attributes.Float("beta1"));
  FT_ASSIGN_OR_RETURN(settings.beta2, context.attributes.Float("beta2"));
  FT_ASSIGN_OR_RETURN(settings.eps, context.attributes.Float("eps"));
  FT_ASSIGN_OR_RETURN(settings.weight_decay, context.attributes.Float("weight_decay"));
  settings.decoupled = kDecoupled;
  return MakeUpdate(context, 2, settings, Adam);
}

KernelOr MakeSgd(const KernelContext& context) {
  SgdSettings settings;
  FT_ASSIGN_OR_RETURN(settings.momentum, context.attributes.Float("momentum"));
  FT_ASSIGN_OR_RETURN(settings.weight_decay, context.attributes.Float("weight_decay"));
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
  FT_ASSIGN_OR_RETURN(const double factor, context.attributes.Float("factor"));
  return MakeKernel([factor, scaler = context.in(0).as<float>(), result = context.out(0).as<float>()](
                        StreamHandle stream) { return LossScale(scaler, factor, result, stream); });
}

KernelOr MakeUpdateScaler(const KernelContext& context) {
  FT_RETURN_IF_ERROR(CheckCounts(context.operands, 1, 1));
  FT_RETURN_IF_ERROR(CheckSize(context.in(0), "coefficient", 1));
  FT_RETURN_IF_ERROR(CheckSize(context.out(0), "scaler", kScalerElements));
  ScalerPolicy policy;
  const KernelAttributes& attributes = context.attributes;
  FT_ASSIGN_OR_RETURN(policy.growth_factor, attributes.Float("growth_factor"));
  FT_ASSIGN_OR_RETURN(policy.backoff_factor, attributes.Float("backoff_factor"));
  FT_ASSIGN_OR_RETURN(policy.min_scale, attributes.Float("min_scale"));
  FT_ASSIGN_OR_RETURN(const int64_t growth_interval, attributes.Int("growth_interval"));
  FT_ASSIGN_OR_RETURN(const int64_t hysteresis, attributes.Int("hysteresis"));
  if (growth_interval < 1 || growth_interval > kMaxGrowthInterval || hysteresis < 1) {
    return absl::InvalidArgumentError(
        fmt::format("'growth_interval' must be 1 to {} and 'hysteresis' at least 1, got {} and {}",
                    kMaxGrowthInterval, growth_interval, hysteresis));
  }
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
