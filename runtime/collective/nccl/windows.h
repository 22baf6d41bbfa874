// Windows: memory of all ranks of a communicator that each of them has mapped, so that collectives read and
// write it in place, by copy engines and by the switch. What of that a library can be trusted with, and what
// it is asked for.
#pragma once

#include "runtime/collective/nccl/nccl_abi.h"

namespace ft::nccl {

// Whether windows of this library, by its number, work among so many ranks.
bool WindowsWork(int version, int ranks);

// Whether NCCL's own variable, NCCL_WIN_ENABLE, leaves them out here.
bool WindowsAreOff();

// Gathers leave all multiprocessors to computation where copy engines can do it; sums take as few as are
// nearly as fast.
CtaPolicy CtaPolicyOf(bool gathers);

}  // namespace ft::nccl
