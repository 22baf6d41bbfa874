// Room in the address space for what libraries take without asking.
#pragma once

#include "absl/status/status.h"

namespace ft {

// OpenBLAS maps 128 MiB for itself and as much for each thread that multiplies. Where a limit on memory
// (ulimit -v) leaves it none it tries again for ever. Errors: ResourceExhausted (exit status 74) when
// `threads` of them would not find room. Before main, when OpenBLAS is loaded, the same is looked at for its
// first one, and the program ends with a line and status 74.
absl::Status CheckAddressSpace(int threads);

}  // namespace ft
