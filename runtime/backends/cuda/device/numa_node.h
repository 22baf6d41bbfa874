// Where in its host a device is plugged in.
#pragma once

#include <optional>
#include <string>

namespace ft::cuda {

// The NUMA node of the device with this PCI address ("0000:3B:00.0"); nullopt where the system does not say,
// as on hosts that have one. `root`: where /sys lies, for tests.
std::optional<int> NumaNodeOf(const std::string& pci_address, const std::string& root = "");

}  // namespace ft::cuda
