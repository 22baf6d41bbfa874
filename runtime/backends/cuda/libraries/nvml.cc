#include "runtime/backends/cuda/libraries/nvml.h"

#include <array>
#include <utility>

#include "runtime/backends/cuda/libraries/dynamic_library.h"

namespace ft::cuda {
namespace {

// As nvml.h declares them. The header is not in every toolkit, and there is no more to it.
struct NvmlDevice;
struct NvmlUtilization {
  unsigned device, memory;  // percent
};
struct NvmlMemory {
  unsigned version;
  unsigned long long total, reserved, free, used;  // bytes
};
constexpr unsigned kMemoryVersion = sizeof(NvmlMemory) | (2u << 24);
using NvmlInit = int();
using NvmlDeviceByPciAddress = int(const char* address, NvmlDevice** device);
using NvmlDeviceUtilization = int(NvmlDevice* device, NvmlUtilization* utilization);
using NvmlDeviceMemory = int(NvmlDevice* device, NvmlMemory* memory);

// The device, when NVML is there and knows it, with a function that is asked about it.
template <typename Function>
std::optional<std::pair<NvmlDevice*, Function*>> Find(const std::string& pci_address, const char* name) {
  const absl::StatusOr<DynamicLibrary> library =
      DynamicLibrary::Open("NVML", std::array{"libnvidia-ml.so.1"});
  if (!library.ok()) return std::nullopt;
  NvmlInit* init = nullptr;
  NvmlDeviceByPciAddress* find = nullptr;
  Function* function = nullptr;
  if (!library->Find("nvmlInit_v2", init).ok() ||
      !library->Find("nvmlDeviceGetHandleByPciBusId_v2", find).ok() || !library->Find(name, function).ok())
    return std::nullopt;
  NvmlDevice* device = nullptr;
  if (init() != 0 || find(pci_address.c_str(), &device) != 0) return std::nullopt;
  return std::pair(device, function);
}

}  // namespace

std::function<double()> UtilizationMeter(const std::string& pci_address) {
  const auto found = Find<NvmlDeviceUtilization>(pci_address, "nvmlDeviceGetUtilizationRates");
  if (!found.has_value()) return nullptr;
  return [device = found->first, utilization = found->second]() -> double {
    NvmlUtilization now;
    return utilization(device, &now) == 0 ? static_cast<double>(now.device) : -1;
  };
}

std::optional<uint64_t> UsedBytes(const std::string& pci_address) {
  const auto found = Find<NvmlDeviceMemory>(pci_address, "nvmlDeviceGetMemoryInfo_v2");
  NvmlMemory memory = {.version = kMemoryVersion, .total = 0, .reserved = 0, .free = 0, .used = 0};
  if (!found.has_value() || found->second(found->first, &memory) != 0) return std::nullopt;
  return memory.used;
}

}  // namespace ft::cuda
