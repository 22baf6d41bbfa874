#include "runtime/backends/cpu/parameter_update.h"

#include <algorithm>

#include "runtime/backends/cpu/routines/random.h"

namespace ft::cpu {
namespace {

// The same parts in pieces of at most kGrain elements.
std::vector<ParameterPart> Cut(const std::vector<ParameterPart>& parts) {
  std::vector<ParameterPart> pieces;
  for (const ParameterPart& part : parts) {
    for (int64_t at = part.begin; at < part.end; at += kGrain) {
      pieces.push_back(
          {at, std::min(part.end, at + kGrain), part.first + at - part.begin, part.decays, part.stream});
    }
  }
  return pieces;
}

}  // namespace

void ParameterUpdate::RefreshCopy() const {
  if (!working_copy.present()) return;
  const auto from_float = routines->convert.from_float[FloatIndex(working_copy.dtype)];
  ParallelFor(static_cast<int64_t>(parts.size()), threads, [&](int64_t i) {
    const ParameterPart& piece = parts[i];
    from_float(parameter.as<float>() + piece.begin, working_copy.data, piece.begin, piece.end - piece.begin);
  });
}

absl::StatusOr<ParameterUpdate> ReadParameterUpdate(const KernelContext& context, size_t states) {
  ParameterUpdate update;
  FT_ASSIGN_OR_RETURN(static_cast<ParameterOperands&>(update),
                      ReadParameterOperands(context.operands, context.attributes, states));
  update.parts = Cut(update.parts);
  update.threads = ThreadsFor(context.num_threads, 4 * update.gradient.elements());
  update.routines = &context.routines;
  return update;
}

void ParameterUpdate::StoreRounded(const ParameterPart& piece, const float* values, int64_t at,
                                   int64_t n) const {
  if (rng == nullptr) {
    routines->convert.from_float[FloatIndex(parameter.dtype)](values, parameter.data, at, n);
    return;
  }
  const RoundingArgs args = {static_cast<uint64_t>(rng[0]), piece.stream, static_cast<uint32_t>(*step)};
  routines->random.round_bf16(args, values, parameter.as<uint16_t>() + at, piece.first + at - piece.begin, n);
}

}  // namespace ft::cpu
