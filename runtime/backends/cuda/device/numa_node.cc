#include "runtime/backends/cuda/device/numa_node.h"

#include <fstream>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"

namespace ft::cuda {

std::optional<int> NumaNodeOf(const std::string& pci_address, const std::string& root) {
  if (pci_address.empty()) return std::nullopt;
  std::ifstream in(
      absl::StrCat(root, "/sys/bus/pci/devices/", absl::AsciiStrToLower(pci_address), "/numa_node"));
  int node = -1;
  in >> node;
  return in && node >= 0 ? std::optional(node) : std::nullopt;
}

}  // namespace ft::cuda
