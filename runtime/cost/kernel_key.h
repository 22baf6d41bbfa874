// By what a kernel that was timed is found again: in the same plan, and in any other that has it.
#pragma once

#include <cstdint>

#include "runtime/plan/plan.pb.h"
#include "runtime/plan/target.h"

namespace ft {

// A hash of all that decides how long a kernel takes: its name, attributes, the body of its cluster, and the
// types and shapes of its operands. Of an operand that depends on the mesh the whole counts, so that a kernel
// over slices has one key on every mesh (ShareOfRank says the rest). Where its numbers come from (random
// streams, which buffers) does not count.
uint64_t KernelKey(const proto::Plan& plan, const proto::Instruction& kernel);

// What `target` knows of that kernel; nullptr: nothing.
const Target::TimedKernel* FindTimed(const Target& target, const proto::Plan& plan,
                                     const proto::Instruction& kernel);

}  // namespace ft
