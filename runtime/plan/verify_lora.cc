// Adapters of low rank: that they are there, in their shapes, trained beside weights that are not; and what
// is frozen.
#include <cmath>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "absl/strings/str_cat.h"
#include "runtime/base/lora_names.h"
#include "runtime/base/printable.h"
#include "runtime/base/status_macros.h"
#include "runtime/plan/adapter_parameters.h"
#include "runtime/plan/verify_parts.h"

namespace ft {
namespace {

constexpr std::string_view kWeights[] = {"parameters", "master"};

template <typename... Parts>
absl::Status Faulty(const Parts&... parts) {
  return absl::InvalidArgumentError(absl::StrCat("invalid plan: ", parts...));
}

// All parameters of a unit, or none, and nothing is kept for an update.
absl::Status VerifyFrozen(const proto::Plan& plan) {
  std::vector<int> frozen(static_cast<size_t>(plan.units_size()), -1);
  for (const proto::Parameter& parameter : plan.parameters()) {
    int& unit = frozen[parameter.unit()];
    if (unit >= 0 && unit != static_cast<int>(parameter.frozen()))
      return Faulty("unit ", Quote(plan.units(static_cast<int>(parameter.unit())).name()),
                    " has parameters that are trained and others that are not");
    unit = static_cast<int>(parameter.frozen());
  }
  for (const proto::Plan::UnitState& state : plan.unit_states()) {
    if (frozen[state.unit()] == 1 && state.role() != kWeights[0] && state.role() != kWeights[1])
      return Faulty("unit ", Quote(plan.units(static_cast<int>(state.unit())).name()), " is frozen, but has ",
                    Quote(state.role()));
  }
  return absl::OkStatus();
}

using ParametersByName = std::map<std::string_view, const proto::Parameter*>;

const proto::Parameter* Find(const ParametersByName& parameters, const std::string& name) {
  const auto found = parameters.find(name);
  return found == parameters.end() ? nullptr : found->second;
}

bool Is(const proto::Parameter& parameter, uint64_t rows, uint64_t columns) {
  return parameter.shape_size() == 2 && parameter.shape(0) == rows && parameter.shape(1) == columns &&
         !parameter.frozen();
}

absl::Status VerifyAdapter(const proto::Lora& lora, const std::string& module,
                           const ParametersByName& parameters) {
  const proto::Parameter* weight = Find(parameters, module + ".weight");
  const proto::Parameter* a = Find(parameters, module + kLoraA);
  const proto::Parameter* b = Find(parameters, module + kLoraB);
  if (weight == nullptr || a == nullptr || b == nullptr || !weight->frozen() || weight->shape_size() != 2)
    return Faulty("module ", Quote(module), " does not have a frozen matrix and adapters");
  const uint64_t rows = weight->shape(0), columns = weight->shape(1), rank = lora.rank();
  const bool output_first = Is(*a, rank, columns) && Is(*b, rows, rank);
  const bool input_first = Is(*a, rank, rows) && Is(*b, columns, rank);
  if (lora.input_first() ? input_first : output_first || input_first) return absl::OkStatus();
  return Faulty("the adapters of module ", Quote(module), " do not fit its weight");
}

// Adapters are trained, and modules that are saved whole, and nothing else is.
absl::Status VerifyTrained(const proto::Plan& plan) {
  const AdapterParameters trained(plan.lora());
  std::set<std::string> found;  // modules
  for (const proto::Parameter& parameter : plan.parameters()) {
    const std::string module = parameter.name().substr(0, parameter.name().rfind('.'));
    found.insert(module);
    if (parameter.frozen() == trained.Has(parameter.name()))
      return Faulty("parameter ", Quote(parameter.name()), parameter.frozen() ? " is frozen" : " is trained",
                    ", which its adapters do not say");
  }
  for (const std::string& module : plan.lora().saved())
    if (!found.contains(module)) return Faulty("module ", Quote(module), " has no parameter to be saved");
  return absl::OkStatus();
}

}  // namespace

absl::Status VerifyLora(const proto::Plan& plan) {
  FT_RETURN_IF_ERROR(VerifyFrozen(plan));
  if (!plan.has_lora()) return absl::OkStatus();
  const proto::Lora& lora = plan.lora();
  if (lora.rank() == 0 || !std::isfinite(lora.alpha()) || lora.alpha() <= 0 || !(lora.dropout() >= 0) ||
      lora.dropout() >= 1 || lora.modules().empty())
    return Faulty("it has adapters of rank ", lora.rank(), ", alpha ", lora.alpha(), " and dropout ",
                  lora.dropout(), " for ", lora.modules_size(), " modules");
  ParametersByName parameters;
  for (const proto::Parameter& parameter : plan.parameters())
    parameters.emplace(parameter.name(), &parameter);
  for (const std::string& module : lora.modules())
    FT_RETURN_IF_ERROR(VerifyAdapter(lora, module, parameters));
  return VerifyTrained(plan);
}

}  // namespace ft
