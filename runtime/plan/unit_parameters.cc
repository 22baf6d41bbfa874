#include "runtime/plan/unit_parameters.h"

#include <algorithm>
#include <functional>
#include <numeric>

#include "runtime/plan/size_expr.h"

namespace ft {

uint64_t ElementsOf(const proto::Parameter& parameter) {
  return std::accumulate(parameter.shape().begin(), parameter.shape().end(), uint64_t{1},
                         std::multiplies<>());
}

UnitParameters ParametersOfUnits(const proto::Plan& plan) {
  UnitParameters units(plan.units_size());
  for (int i = 0; i < plan.parameters_size(); ++i) {
    const proto::Parameter& parameter = plan.parameters(i);
    units[parameter.unit()].push_back(
        {.begin = static_cast<int64_t>(parameter.offset()),
         .end = static_cast<int64_t>(parameter.offset() + ElementsOf(parameter)),
         .decays = parameter.decay(),
         .number = static_cast<uint32_t>(i)});
  }
  for (std::vector<ParameterRange>& unit : units)
    std::sort(unit.begin(), unit.end(),
              [](const ParameterRange& a, const ParameterRange& b) { return a.begin < b.begin; });
  return units;
}

bool IsFlat(const proto::Plan& plan, const proto::Operand& operand) {
  if (operand.buffer_plus_one() == 0 || !(operand.whole() || operand.own_slice())) return false;
  return IsOfUnit(plan.buffers(operand.buffer_plus_one() - 1).size());
}

}  // namespace ft
