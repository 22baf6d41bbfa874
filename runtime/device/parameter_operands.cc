#include "runtime/device/parameter_operands.h"

#include <algorithm>

#include "fmt/format.h"
#include "runtime/base/checked.h"
#include "runtime/base/philox.h"
#include "runtime/base/status_macros.h"
#include "runtime/device/check.h"

namespace ft {
namespace {

absl::Status CheckParameter(const ParameterOperands& o) {
  FT_RETURN_IF_ERROR(CheckFloatSize(o.parameter, "parameter", o.gradient.elements()));
  if (o.parameter.dtype == DType::kF32) return absl::OkStatus();
  if (o.parameter.dtype != DType::kBF16)
    return absl::InvalidArgumentError("parameter must be f32 or, without a master, bf16");
  if (o.working_copy.present()) return absl::InvalidArgumentError("a bf16 parameter has no working copy");
  return absl::OkStatus();
}

absl::Status CheckWorkingCopy(const ParameterOperands& o) {
  if (!o.working_copy.present()) return absl::OkStatus();
  FT_RETURN_IF_ERROR(CheckFloatSize(o.working_copy, "working copy", o.gradient.elements()));
  if (o.working_copy.dtype != DType::kF32) return absl::OkStatus();
  return absl::InvalidArgumentError("working copy must be bf16 or f16: in f32 the parameter is its own");
}

absl::Status CheckScalars(const KernelOperands& operands) {
  FT_RETURN_IF_ERROR(CheckSize(operands.in[1], "coefficient", 1));
  FT_RETURN_IF_ERROR(CheckSize(operands.in[2], "lr", 1));
  return CheckSize(operands.in[3], "step", 1, DType::kI64);
}

// Sets rng; a stream for each segment, or none where it rounds to nearest.
absl::StatusOr<std::vector<int64_t>> ReadRounding(const KernelOperands& operands,
                                                  const KernelAttributes& attributes, ParameterOperands& o) {
  if (!attributes.Has("stochastic_rounding")) return std::vector<int64_t>();
  if (o.parameter.dtype != DType::kBF16)
    return absl::InvalidArgumentError("'stochastic_rounding' takes a parameter in bf16");
  if (operands.in.size() != 5)
    return absl::InvalidArgumentError("'stochastic_rounding' takes an operand rng");
  FT_RETURN_IF_ERROR(CheckSize(operands.in[4], "rng", 3, DType::kI64));
  o.rng = operands.in[4].as<int64_t>();
  FT_ASSIGN_OR_RETURN(std::vector<int64_t> streams, attributes.Ints("stochastic_rounding"));
  for (const int64_t stream : streams) {
    if (stream < 0 || stream >= kFirstRoundingStream)
      return absl::InvalidArgumentError(fmt::format("there is no stream {} of random numbers", stream));
  }
  return streams;
}

// The parameters' parts of [flat_begin, flat_begin + elements). A stream for each parameter, or none.
absl::StatusOr<std::vector<ParameterPart>> CutSegments(const std::vector<int64_t>& segments,
                                                       const std::vector<int64_t>& streams,
                                                       int64_t flat_begin, int64_t elements) {
  if (!streams.empty() && streams.size() != segments.size() / 3) {
    return absl::InvalidArgumentError(fmt::format("'stochastic_rounding' must have {} streams, got {}",
                                                  segments.size() / 3, streams.size()));
  }
  std::vector<ParameterPart> parts;
  for (size_t i = 0; i < segments.size(); i += 3) {
    const int64_t begin = std::max<int64_t>(0, segments[i] - flat_begin);
    const int64_t end = std::min(elements, segments[i + 1] - flat_begin);
    if (begin >= end) continue;
    const int64_t first = begin + flat_begin - segments[i];
    if (segments[i + 2] != 0 && segments[i + 2] != 1)
      return absl::InvalidArgumentError("whether a segment decays is 0 or 1");
    const uint32_t stream = streams.empty() ? 0 : static_cast<uint32_t>(streams[i / 3]);
    if (!streams.empty() && first % 4 != 0) {
      return absl::InvalidArgumentError("the slice must begin at a multiple of 4 elements of the parameter");
    }
    parts.push_back({begin, end, first, segments[i + 2] == 1, kFirstRoundingStream + stream});
  }
  return parts;
}

}  // namespace

absl::StatusOr<InitialValues> ReadInitialValues(const KernelOperands& operands,
                                                const KernelAttributes& attributes) {
  FT_RETURN_IF_ERROR(CheckCounts(operands, 1, 1));
  InitialValues result;
  result.slice = operands.out[0];
  FT_RETURN_IF_ERROR(CheckSize(operands.in[0], "rng", 3, DType::kI64));
  result.rng = operands.in[0].as<int64_t>();
  FT_RETURN_IF_ERROR(CheckFloat(result.slice, "slice"));
  FT_ASSIGN_OR_RETURN(const int64_t begin, IntIn(attributes, "begin", 0, kMaxUnitElements));
  FT_ASSIGN_OR_RETURN(const int64_t end, IntIn(attributes, "end", begin, kMaxUnitElements));
  FT_ASSIGN_OR_RETURN(const double value, FloatIn(attributes, "value"));
  const int64_t slice_begin = result.slice.flat_begin, elements = result.slice.elements();
  result.begin = std::clamp<int64_t>(begin - slice_begin, 0, elements);
  result.end = std::clamp<int64_t>(end - slice_begin, result.begin, elements);
  result.first = result.begin + slice_begin - begin;
  result.value = static_cast<float>(value);
  return result;
}

absl::StatusOr<uint32_t> ReadNormalStream(const InitialValues& values, const KernelAttributes& attributes) {
  if (values.begin < values.end && values.first % 4 != 0)
    return absl::InvalidArgumentError("the slice must begin at a multiple of 4 elements of the parameter");
  return RandomStream(attributes);
}

absl::StatusOr<ParameterOperands> ReadParameterOperands(const KernelOperands& operands,
                                                        const KernelAttributes& attributes, size_t states) {
  const size_t in = operands.in.size(), out = operands.out.size();
  if ((in != 4 && in != 5) || (out != 1 + states && out != 2 + states)) {
    return absl::InvalidArgumentError(fmt::format("takes 4 or 5 operands and {} or {} results, got {} and {}",
                                                  1 + states, 2 + states, in, out));
  }
  ParameterOperands result;
  result.gradient = operands.in[0];
  result.coefficient = operands.in[1].as<float>();
  result.lr = operands.in[2].as<float>();
  result.step = operands.in[3].as<int64_t>();
  result.parameter = operands.out[0];
  if (out == 2 + states) result.working_copy = operands.out[1 + states];
  FT_RETURN_IF_ERROR(CheckFloat(result.gradient, "gradient"));
  FT_RETURN_IF_ERROR(CheckScalars(operands));
  FT_RETURN_IF_ERROR(CheckParameter(result));
  for (size_t i = 0; i < states; ++i) {
    const Tensor& state = operands.out[1 + i];
    FT_RETURN_IF_ERROR(CheckSize(state, fmt::format("state {}", i + 1), result.gradient.elements()));
    result.states[i] = state.as<float>();
  }
  FT_RETURN_IF_ERROR(CheckWorkingCopy(result));
  FT_ASSIGN_OR_RETURN(const std::vector<int64_t> segments, Segments(attributes, 3));
  FT_ASSIGN_OR_RETURN(const std::vector<int64_t> streams, ReadRounding(operands, attributes, result));
  FT_ASSIGN_OR_RETURN(
      result.parts, CutSegments(segments, streams, result.parameter.flat_begin, result.gradient.elements()));
  return result;
}

}  // namespace ft
