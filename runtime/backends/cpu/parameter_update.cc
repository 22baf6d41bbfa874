#include "runtime/backends/cpu/parameter_update.h"

#include "fmt/format.h"
#include "runtime/backends/cpu/routines/random.h"
#include "runtime/base/philox.h"

namespace ft::cpu {
namespace {

// The parameters' parts of [flat_begin, flat_begin + elements), cut to at most kGrain elements each. A stream
// for each parameter, or none.
absl::StatusOr<std::vector<ParameterPiece>> CutSegments(const std::vector<int64_t>& segments,
                                                        const std::vector<int64_t>& streams,
                                                        int64_t flat_begin, int64_t elements) {
  if (segments.size() % 3 != 0)
    return absl::InvalidArgumentError("'segments' must be triples: begin, end, decay");
  if (!streams.empty() && streams.size() != segments.size() / 3) {
    return absl::InvalidArgumentError(fmt::format("'stochastic_rounding' must have {} streams, got {}",
                                                  segments.size() / 3, streams.size()));
  }
  std::vector<ParameterPiece> pieces;
  for (size_t i = 0; i < segments.size(); i += 3) {
    const int64_t begin = std::max<int64_t>(0, segments[i] - flat_begin);
    const int64_t end = std::min(elements, segments[i + 1] - flat_begin);
    const int64_t first = begin + flat_begin - segments[i];
    const uint32_t stream = streams.empty() ? 0 : static_cast<uint32_t>(streams[i / 3]);
    if (begin < end && !streams.empty() && first % 4 != 0) {
      return absl::InvalidArgumentError("the slice must begin at a multiple of 4 elements of the parameter");
    }
    for (int64_t at = begin; at < end; at += kGrain) {
      pieces.push_back({at, std::min(end, at + kGrain), first + at - begin, segments[i + 2] != 0,
                        kFirstRoundingStream + stream});
    }
  }
  return pieces;
}

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

absl::Status CheckOperands(const KernelContext& context, size_t states) {
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

// The streams of stochastic rounding; empty where it rounds to nearest.
absl::StatusOr<std::vector<int64_t>> ReadRounding(const KernelContext& context, ParameterUpdate& update) {
  if (!context.attributes.Has("stochastic_rounding")) return std::vector<int64_t>();
  if (update.parameter.dtype != DType::kBF16)
    return absl::InvalidArgumentError("'stochastic_rounding' takes a parameter in bf16");
  if (context.operands.in.size() != 5)
    return absl::InvalidArgumentError("'stochastic_rounding' takes an operand rng");
  FT_RETURN_IF_ERROR(CheckSize(context.in(4), "rng", 3, DType::kI64));
  update.rng = context.in(4).as<int64_t>();
  return context.attributes.Ints("stochastic_rounding");
}

}  // namespace

void ParameterUpdate::RefreshCopy() const {
  if (!working_copy.present()) return;
  const auto from_float = routines->convert.from_float[FloatIndex(working_copy.dtype)];
  ParallelFor(static_cast<int64_t>(pieces.size()), threads, [&](int64_t i) {
    const ParameterPiece& piece = pieces[i];
    from_float(parameter.as<float>() + piece.begin, working_copy.data, piece.begin, piece.end - piece.begin);
  });
}

absl::StatusOr<ParameterUpdate> ReadParameterUpdate(const KernelContext& context, size_t states) {
  FT_RETURN_IF_ERROR(CheckOperands(context, states));
  ParameterUpdate update;
  update.gradient = context.in(0);
  update.coefficient = context.in(1).as<float>();
  update.lr = context.in(2).as<float>();
  update.step = context.in(3).as<int64_t>();
  update.parameter = context.out(0);
  const int64_t elements = update.gradient.elements();
  if (context.operands.out.size() == 2 + states) update.working_copy = context.out(1 + states);
  if (update.working_copy.present()) {
    FT_RETURN_IF_ERROR(CheckFloatSize(update.working_copy, "working copy", elements));
    if (update.working_copy.dtype == DType::kF32) {
      return absl::InvalidArgumentError("working copy must be bf16 or f16: in f32 the parameter is its own");
    }
  }
  FT_ASSIGN_OR_RETURN(const std::vector<int64_t> segments, context.attributes.Ints("segments"));
  FT_ASSIGN_OR_RETURN(const std::vector<int64_t> streams, ReadRounding(context, update));
  FT_ASSIGN_OR_RETURN(update.pieces, CutSegments(segments, streams, update.parameter.flat_begin, elements));
  update.threads = ThreadsFor(context.num_threads, 4 * elements);
  update.routines = &context.routines;
  return update;
}

void ParameterUpdate::StoreRounded(const ParameterPiece& piece, const float* values, int64_t at,
                                   int64_t n) const {
  if (rng == nullptr) {
    routines->convert.from_float[FloatIndex(parameter.dtype)](values, parameter.data, at, n);
    return;
  }
  const RoundingArgs args = {static_cast<uint64_t>(rng[0]), piece.stream, static_cast<uint32_t>(*step)};
  routines->random.round_bf16(args, values, parameter.as<uint16_t>() + at, piece.first + at - piece.begin, n);
}

}  // namespace ft::cpu
