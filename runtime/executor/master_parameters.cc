#include "runtime/executor/master_parameters.h"

#include "absl/strings/str_cat.h"

namespace ft {

absl::StatusOr<MasterParameters> FindMasterParameters(const proto::Plan& plan,
                                                      const OperandResolver& resolver, uint32_t unit) {
  const uint32_t plus_one = unit < static_cast<uint32_t>(plan.unit_buffers_size())
                                ? plan.unit_buffers(unit).parameters_plus_one()
                                : 0;
  if (plus_one == 0 || plan.buffers(plus_one - 1).size().value() != sizeof(float)) {
    return absl::FailedPreconditionError(
        absl::StrCat("the plan has no fp32 parameters at rest for unit '", plan.units(unit).name(), "'"));
  }
  const uint32_t buffer = plus_one - 1;
  MasterParameters master;
  master.data = reinterpret_cast<float*>(resolver.Address(buffer));
  master.elements = resolver.Bytes(buffer) / sizeof(float);
  if (plan.buffers(buffer).size().kind() == proto::SizeExpr::UNIT_SLICE)
    master.begin = resolver.SliceBegin(unit);
  return master;
}

}  // namespace ft
