// How busy a GPU is, by NVIDIA's management library.
#pragma once

#include <functional>
#include <string>

namespace ft::cuda {

// Percent of the last moments (a sixth of a second to a second) in which a kernel ran on the device with this
// PCI address ("0000:3b:00.0"); negative when NVML does not say. Empty without NVML: it comes with the
// driver, but not into every container.
std::function<double()> UtilizationMeter(const std::string& pci_address);

}  // namespace ft::cuda
