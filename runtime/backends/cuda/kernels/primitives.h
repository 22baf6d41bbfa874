// Elementwise primitives of runtime/base/elementwise.def, of any types that their row has.
#pragma once

#include "runtime/backends/cuda/kernel_base.h"
#include "runtime/base/elementwise.h"

namespace ft::cuda {

KernelOr MakePrimitive(const ElementwiseRow& row, const KernelContext& context);

}  // namespace ft::cuda
