// How busy and how full a GPU is, by NVIDIA's management library.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

namespace ft::cuda {

// Percent of the last moments (a sixth of a second to a second) in which a kernel ran on the device with this
// PCI address ("0000:3b:00.0"); negative when NVML does not say. Empty without NVML: it comes with the
// driver, but not into every container.
std::function<double()> UtilizationMeter(const std::string& pci_address);

// Bytes of the memory of the device with this PCI address that processes use, without what the driver keeps
// for itself: as cudaMemGetInfo has it, but without a context, which takes some. None when NVML is not there
// or does not say.
std::optional<uint64_t> UsedBytes(const std::string& pci_address);

}  // namespace ft::cuda
