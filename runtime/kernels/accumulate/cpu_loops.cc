#include "runtime/kernels/accumulate/cpu_loops.h"

#include "runtime/backends/cpu/simd/add_into.h"

namespace ft::cpu::FT_ISA {

extern const AccumulateLoops kAccumulate;
const AccumulateLoops kAccumulate = {FT_EVERY_FLOAT(AddInto)};

}  // namespace ft::cpu::FT_ISA
