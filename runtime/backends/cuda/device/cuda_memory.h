// Arenas of a CUDA device: one allocation each.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "runtime/backends/cuda/device/device_state.h"
#include "runtime/device/device.h"

namespace ft::cuda {

// `device_name` is for the error, ResourceExhausted with the bytes wanted, free and present. Zeroed.
absl::StatusOr<std::unique_ptr<Memory>> AllocateDeviceMemory(DeviceState& state,
                                                             const std::string& device_name, uint64_t bytes);

// The same in pages that other processes can map; `note` says how many bytes that rounds them up by.
absl::StatusOr<std::unique_ptr<Memory>> AllocateMappableMemory(DeviceState& state,
                                                               const std::string& device_name, uint64_t bytes,
                                                               std::string& note);

// Page-locked, so that copies run at full speed and beside kernels. Zeroed. Larger ones are filled by several
// threads, near the device (its NUMA node, where it is known), and `note` says how long that took.
absl::StatusOr<std::unique_ptr<Memory>> AllocatePinnedMemory(DeviceState& state, uint64_t bytes,
                                                             std::optional<int> numa_node, std::string& note);

}  // namespace ft::cuda
