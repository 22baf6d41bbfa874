#include "runtime/checkpoint/state/plan_state.h"

#include <algorithm>
#include <map>
#include <optional>
#include <string_view>
#include <utility>

#include "fmt/format.h"
#include "fmt/ranges.h"
#include "runtime/base/status_macros.h"
#include "runtime/plan/plan_file.h"
#include "runtime/plan/unit_parameters.h"
#include "runtime/plan/unit_state.h"

namespace ft {
namespace {

constexpr std::string_view kSpent[] = {"gradients", "accumulated"};

bool IsWeights(std::string_view role) { return role == "parameters" || role == "master"; }

bool IsSliced(const proto::Plan& plan, int64_t buffer) {
  return plan.buffers(static_cast<int>(buffer)).size().kind() == proto::SizeExpr::UNIT_SLICE;
}

// Of a state of the optimizer: the plan says how many bytes an element has, and its instructions of which
// type.
absl::StatusOr<DType> DTypeOfState(const proto::Plan& plan, const proto::Plan::UnitState& state,
                                   const BufferDTypes& dtypes) {
  if (state.layout() != proto::Plan::UnitState::ELEMENTS) return DType::kF32;
  const uint64_t bytes = plan.buffers(static_cast<int>(state.buffer())).size().value();
  const std::optional<DType> dtype = dtypes[state.buffer()];
  if (dtype.has_value() && SizeOf(*dtype) == bytes) return *dtype;
  if (!dtype.has_value() && bytes == sizeof(float)) return DType::kF32;
  return absl::FailedPreconditionError(fmt::format("the plan does not say of which type '{}' of unit '{}' is",
                                                   state.role(),
                                                   plan.units(static_cast<int>(state.unit())).name()));
}

absl::Status AddBuffers(const proto::Plan& plan, StateLayout& layout) {
  const BufferDTypes dtypes = DTypesOfBuffers(plan);
  for (uint32_t unit = 0; unit < static_cast<uint32_t>(plan.units_size()); ++unit) {
    const int64_t weights = MasterBuffer(plan, unit);
    if (weights < 0) continue;
    FT_ASSIGN_OR_RETURN(const DType dtype, MasterDType(plan, unit, dtypes));
    layout.buffers.push_back({unit, kWeightsRole, dtype, IsSliced(plan, weights)});
  }
  for (const proto::Plan::UnitState& state : plan.unit_states()) {
    if (IsWeights(state.role()) || std::count(std::begin(kSpent), std::end(kSpent), state.role()) > 0)
      continue;
    FT_ASSIGN_OR_RETURN(const DType dtype, DTypeOfState(plan, state, dtypes));
    layout.buffers.push_back({state.unit(), state.role(), dtype, IsSliced(plan, state.buffer()),
                              static_cast<StateLayoutKind>(state.layout())});
  }
  OrderBuffers(layout.buffers);
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<StateLayout> StateOfPlan(const proto::Plan& plan, const Mesh& mesh) {
  StateLayout layout;
  layout.mesh = mesh;
  layout.block_elements = plan.block_elements();
  for (const proto::Unit& unit : plan.units()) layout.units.push_back({unit.name(), unit.elements()});
  for (const std::vector<ParameterRange>& unit : ParametersOfUnits(plan)) {
    for (const ParameterRange& range : unit) {
      const proto::Parameter& parameter = plan.parameters(static_cast<int>(range.number));
      layout.parameters.push_back({parameter.name(),
                                   {parameter.shape().begin(), parameter.shape().end()},
                                   parameter.unit(),
                                   parameter.offset(),
                                   ElementsOf(parameter),
                                   parameter.stored_as()});
    }
  }
  FT_RETURN_IF_ERROR(AddBuffers(plan, layout));
  FT_RETURN_IF_ERROR(layout.Check());
  return layout;
}

int64_t BufferOfState(const proto::Plan& plan, const StateBuffer& state) {
  return state.role == kWeightsRole ? MasterBuffer(plan, state.unit)
                                    : FindUnitState(plan, state.unit, state.role);
}

std::string ModelFingerprint(const proto::Plan& plan) {
  std::map<std::string_view, std::string> lines;
  for (const proto::Parameter& parameter : plan.parameters())
    lines.emplace(parameter.name(),
                  fmt::format("{} {}\n", parameter.name(), fmt::join(parameter.shape(), "x")));
  std::string text;
  for (const auto& [name, line] : lines) text += line;
  for (const proto::Attribute& fact : plan.facts()) text += fact.SerializeAsString();
  return PlanHashText(PlanHash(text));
}

}  // namespace ft
