// The kernel of any elementwise primitive.
#pragma once

#include "runtime/backends/cpu/kernel_base.h"
#include "runtime/base/elementwise.h"

namespace ft::cpu {

// Through chunks that fit in the first-level cache, each operand read in its own type.
KernelOr MakePrimitive(const ElementwiseRow& row, const KernelContext& context);

}  // namespace ft::cpu
