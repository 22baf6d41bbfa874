#include "runtime/backends/cpu/parameter_update.h"

#include "fmt/format.h"

namespace ft::cpu {
namespace {

// The parameters' parts of [flat_begin, flat_begin + elements), cut to at most kGrain elements each.
absl::StatusOr<std::vector<ParameterPiece>> CutSegments(const std::vector<int64_t>& segments,
                                                        int64_t flat_begin, int64_t elements) {
  if (segments.size() % 3 != 0)
    return absl::InvalidArgumentError("'segments' must be triples: begin, end, decay");
  std::vector<ParameterPiece> pieces;
  for (size_t i = 0; i < segments.size(); i += 3) {
    const int64_t begin = std::max<int64_t>(0, segments[i] - flat_begin);
    const int64_t end = std::min(elements, segments[i + 1] - flat_begin);
    for (int64_t at = begin; at < end; at += kGrain) {
      pieces.push_back({at, std::min(end, at + kGrain), segments[i + 2] != 0});
    }
  }
  return pieces;
}

absl::Status CheckOperands(const KernelContext& context, size_t states) {
  const size_t results = context.operands.out.size();
  if (context.operands.in.size() != 4 || (results != 1 + states && results != 2 + states)) {
    return absl::InvalidArgumentError(fmt::format("takes 4 operands and {} or {} results, got {} and {}",
                                                  1 + states, 2 + states, context.operands.in.size(),
                                                  results));
  }
  const Tensor& gradient = context.in(0);
  FT_RETURN_IF_ERROR(CheckFloat(gradient, "gradient"));
  FT_RETURN_IF_ERROR(CheckSize(context.in(1), "coefficient", 1));
  FT_RETURN_IF_ERROR(CheckSize(context.in(2), "lr", 1));
  FT_RETURN_IF_ERROR(CheckSize(context.in(3), "step", 1, DType::kI64));
  FT_RETURN_IF_ERROR(CheckSize(context.out(0), "parameter", gradient.elements()));
  for (size_t i = 1; i <= states; ++i) {
    FT_RETURN_IF_ERROR(CheckSize(context.out(i), fmt::format("state {}", i), gradient.elements()));
  }
  return absl::OkStatus();
}

}  // namespace

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
  FT_ASSIGN_OR_RETURN(update.pieces, CutSegments(segments, update.parameter.flat_begin, elements));
  update.threads = ThreadsFor(context.num_threads, 4 * elements);
  update.convert = &context.routines.convert;
  return update;
}

}  // namespace ft::cpu
