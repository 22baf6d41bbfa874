// What a plan keeps of a unit from step to step, by role.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "runtime/base/dtype.h"
#include "runtime/plan/plan.pb.h"

namespace ft {

// The buffer of a unit's role; -1: none.
int64_t FindUnitState(const proto::Plan& plan, uint32_t unit, std::string_view role);

// Of the weights that the optimizer updates: those of role "master", or "parameters" where there are none;
// -1: neither.
int64_t MasterBuffer(const proto::Plan& plan, uint32_t unit);

// The type in which any instruction takes or gives a buffer, by buffer; nothing for those that none uses.
// Goes through the whole plan.
using BufferDTypes = std::vector<std::optional<DType>>;
BufferDTypes DTypesOfBuffers(const proto::Plan& plan);

// Of weights that the optimizer updates: fp32 or bf16; of those that are only evaluated fp16, too. `dtypes`
// are DTypesOfBuffers. Errors: FailedPrecondition when the plan does not say where they are, or holds them in
// another type.
absl::StatusOr<DType> MasterDType(const proto::Plan& plan, uint32_t unit, const BufferDTypes& dtypes);

}  // namespace ft
