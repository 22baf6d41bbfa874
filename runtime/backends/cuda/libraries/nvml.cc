#include "runtime/backends/cuda/libraries/nvml.h"

#include <array>

#include "runtime/backends/cuda/libraries/dynamic_library.h"

namespace ft::cuda {
namespace {

// As nvml.h declares them. The header is not in every toolkit, and there is no more to it.
struct NvmlDevice;
struct NvmlUtilization {
  unsigned device, memory;  // percent
};
using NvmlInit = int();
using NvmlDeviceByPciAddress = int(const char* address, NvmlDevice** device);
using NvmlDeviceUtilization = int(NvmlDevice* device, NvmlUtilization* utilization);

}  // namespace

std::function<double()> UtilizationMeter(const std::string& pci_address) {
  const absl::StatusOr<DynamicLibrary> library =
      DynamicLibrary::Open("NVML", std::array{"libnvidia-ml.so.1"});
  if (!library.ok()) return nullptr;
  NvmlInit* init = nullptr;
  NvmlDeviceByPciAddress* find = nullptr;
  NvmlDeviceUtilization* utilization = nullptr;
  if (!library->Find("nvmlInit_v2", init).ok() ||
      !library->Find("nvmlDeviceGetHandleByPciBusId_v2", find).ok() ||
      !library->Find("nvmlDeviceGetUtilizationRates", utilization).ok())
    return nullptr;
  NvmlDevice* device = nullptr;
  if (init() != 0 || find(pci_address.c_str(), &device) != 0) return nullptr;
  return [utilization, device]() -> double {
    NvmlUtilization now;
    return utilization(device, &now) == 0 ? static_cast<double>(now.device) : -1;
  };
}

}  // namespace ft::cuda
