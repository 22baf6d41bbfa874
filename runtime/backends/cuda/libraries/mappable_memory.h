// Memory of a device that other processes can map: the driver's management of virtual memory (cuMemCreate and
// what belongs to it), as NCCL wants it for windows. The current device's.
#pragma once

#include <cstdint>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "runtime/backends/cuda/driver.h"

namespace ft::cuda {

// As Driver has them.
uint64_t MappablePageBytes();
absl::StatusOr<MappableMemory> MallocMappable(uint64_t bytes);
absl::Status FreeMappable(const MappableMemory& memory);

}  // namespace ft::cuda
