// What not every rank has: parameters that go from slices to wholes, and what is computed of those.
#pragma once

#include "absl/status/status.h"
#include "runtime/plan/plan.pb.h"
#include "runtime/plan/verify_place.h"

namespace ft {

// Of an all_to_all whose operands lie in their buffers: slices of units on one side, on the other parameters
// of these units, each once, in groups of which every index is there, all of one type.
absl::Status VerifyAllToAll(const Place& place, const proto::Instruction& instruction);

// Of any instruction whose operands lie in their buffers: nothing but an all_to_all and kernels touches what
// not every rank has. A kernel that does writes nothing else, and reads that of one index alone or what every
// rank has; so it is run where all its operands are.
absl::Status VerifyShares(const Place& place, const proto::Instruction& instruction);

}  // namespace ft
