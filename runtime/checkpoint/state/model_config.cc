#include "runtime/checkpoint/state/model_config.h"

#include <optional>

#include "fmt/format.h"
#include "runtime/base/status_macros.h"
#include "runtime/checkpoint/config_writer.h"
#include "runtime/plan/plan_facts.h"

namespace ft {
namespace {

DType DTypeOfWeights(const StateLayout& state) {
  std::optional<DType> dtype;
  for (const StateBuffer& buffer : state.buffers) {
    if (buffer.role != kWeightsRole) continue;
    if (dtype.has_value() && *dtype != buffer.dtype) return DType::kF32;
    dtype = buffer.dtype;
  }
  return dtype.value_or(DType::kF32);
}

}  // namespace

absl::StatusOr<std::string> ConfigOfModel(std::string_view owner,
                                          const google::protobuf::RepeatedPtrField<proto::Attribute>& facts,
                                          const StateLayout& state) {
  FT_ASSIGN_OR_RETURN(const std::optional<ModelFacts> known, FactsOf(facts));
  if (!known.has_value())
    return absl::FailedPreconditionError(
        fmt::format("{} does not say the facts of its model (ft.facts)", owner));
  return ConfigJson(*known, DTypeOfWeights(state));
}

}  // namespace ft
