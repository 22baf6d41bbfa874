#include "runtime/backends/cuda/libraries/mappable_memory.h"

#include <cuda.h>

#include <algorithm>
#include <vector>

#include "runtime/backends/cuda/libraries/cuda_call.h"
#include "runtime/base/status_macros.h"

namespace ft::cuda {
namespace {

// Functions of the driver; all null where one of them is missing.
struct VirtualMemory {
  CUresult (*granularity)(size_t*, const CUmemAllocationProp*, CUmemAllocationGranularity_flags) = nullptr;
  CUresult (*create)(CUmemGenericAllocationHandle*, size_t, const CUmemAllocationProp*,
                     unsigned long long) = nullptr;
  CUresult (*release)(CUmemGenericAllocationHandle) = nullptr;
  CUresult (*reserve)(CUdeviceptr*, size_t, size_t, CUdeviceptr, unsigned long long) = nullptr;
  CUresult (*free)(CUdeviceptr, size_t) = nullptr;
  CUresult (*map)(CUdeviceptr, size_t, size_t, CUmemGenericAllocationHandle, unsigned long long) = nullptr;
  CUresult (*unmap)(CUdeviceptr, size_t) = nullptr;
  CUresult (*set_access)(CUdeviceptr, size_t, const CUmemAccessDesc*, size_t) = nullptr;

  static const VirtualMemory& Get() {
    static const VirtualMemory found = Find();
    return found;
  }

 private:
  static VirtualMemory Find() {
    VirtualMemory found;
    FindInDriver("cuMemGetAllocationGranularity", found.granularity);
    FindInDriver("cuMemCreate", found.create);
    FindInDriver("cuMemRelease", found.release);
    FindInDriver("cuMemAddressReserve", found.reserve);
    FindInDriver("cuMemAddressFree", found.free);
    FindInDriver("cuMemMap", found.map);
    FindInDriver("cuMemUnmap", found.unmap);
    FindInDriver("cuMemSetAccess", found.set_access);
    const bool all = found.granularity && found.create && found.release && found.reserve && found.free &&
                     found.map && found.unmap && found.set_access;
    return all ? found : VirtualMemory{};
  }
};

CUmemAllocationProp PropertiesOn(int device, int handles, bool for_network_cards) {
  CUmemAllocationProp properties = {};
  properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  properties.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  properties.location.id = device;
  properties.requestedHandleTypes = static_cast<CUmemAllocationHandleType>(handles);
  properties.allocFlags.gpuDirectRDMACapable = for_network_cards ? 1 : 0;
  return properties;
}

// What can be asked for, the best first: between processes of a host by file descriptors; where GPUs of
// several hosts share a fabric by its handles, too, which may be refused to this user; and for network cards,
// where they reach such memory.
std::vector<CUmemAllocationProp> Choices(int device) {
  constexpr int kFile = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
  const bool cards = DriverSaysHas(CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_WITH_CUDA_VMM_SUPPORTED, device);
  std::vector<CUmemAllocationProp> choices;
  if (DriverSaysHas(CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_FABRIC_SUPPORTED, device))
    choices.push_back(PropertiesOn(device, kFile | CU_MEM_HANDLE_TYPE_FABRIC, cards));
  if (cards) choices.push_back(PropertiesOn(device, kFile, true));
  choices.push_back(PropertiesOn(device, kFile, false));
  return choices;
}

// 0: not known.
uint64_t PageBytes(const VirtualMemory& driver, int device) {
  uint64_t most = 0;
  for (const CUmemAllocationProp& choice : Choices(device)) {
    size_t bytes = 0;
    if (driver.granularity(&bytes, &choice, CU_MEM_ALLOC_GRANULARITY_RECOMMENDED) == CUDA_SUCCESS)
      most = std::max<uint64_t>(most, bytes);
  }
  return most;
}

// Physical memory of the first choice that is not refused.
CUresult Create(const VirtualMemory& driver, int device, uint64_t bytes,
                CUmemGenericAllocationHandle& handle) {
  CUresult result = CUDA_ERROR_NOT_SUPPORTED;
  for (const CUmemAllocationProp& choice : Choices(device)) {
    result = driver.create(&handle, bytes, &choice, 0);
    if (result == CUDA_SUCCESS || result == CUDA_ERROR_OUT_OF_MEMORY) return result;
  }
  return result;
}

// The memory has addresses, and the device may read and write it.
absl::Status Map(const VirtualMemory& driver, CUmemGenericAllocationHandle handle, int device,
                 const MappableMemory& memory) {
  const auto address = reinterpret_cast<CUdeviceptr>(memory.data);
  FT_DRIVER_CALL(driver.map(address, memory.bytes, 0, handle, 0), "cuMemMap(%d)", memory.bytes);
  CUmemAccessDesc access = {};
  access.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  access.location.id = device;
  access.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
  const CUresult result = driver.set_access(address, memory.bytes, &access, 1);
  if (result != CUDA_SUCCESS) driver.unmap(address, memory.bytes);
  FT_DRIVER_CALL(result, "cuMemSetAccess(%d)", memory.bytes);
  return absl::OkStatus();
}

// Whole pages.
absl::StatusOr<MappableMemory> Allocate(const VirtualMemory& driver, int device, uint64_t bytes) {
  MappableMemory memory{.data = nullptr, .bytes = bytes};
  CUmemGenericAllocationHandle handle = 0;
  FT_DRIVER_CALL(Create(driver, device, bytes, handle), "cuMemCreate(%d)", bytes);
  CUdeviceptr address = 0;
  const CUresult reserved = driver.reserve(&address, bytes, 0, 0, 0);
  memory.data = reinterpret_cast<void*>(address);
  absl::Status mapped;
  if (reserved == CUDA_SUCCESS) {
    mapped = Map(driver, handle, device, memory);
    if (!mapped.ok()) driver.free(address, bytes);
  }
  driver.release(handle);  // what is mapped stays until it is unmapped, here and by others
  FT_DRIVER_CALL(reserved, "cuMemAddressReserve(%d)", bytes);
  FT_RETURN_IF_ERROR(mapped);
  return memory;
}

}  // namespace

uint64_t MappablePageBytes() {
  const VirtualMemory& driver = VirtualMemory::Get();
  int device = 0;
  if (driver.create == nullptr || cudaGetDevice(&device) != cudaSuccess) {
    cudaGetLastError();
    return 0;
  }
  if (!DriverSaysHas(CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED, device) ||
      !DriverSaysHas(CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED, device))
    return 0;
  // Whether it works is known when it has.
  const uint64_t page = PageBytes(driver, device);
  const absl::StatusOr<MappableMemory> tried = page == 0 ? MappableMemory{} : Allocate(driver, device, page);
  if (absl::IsResourceExhausted(tried.status())) return page;  // that is no reason: the arena will say so
  return tried.ok() && page > 0 && FreeMappable(*tried).ok() ? page : 0;
}

absl::StatusOr<MappableMemory> MallocMappable(uint64_t bytes) {
  const VirtualMemory& driver = VirtualMemory::Get();
  int device = 0;
  FT_CUDA_CALL(cudaGetDevice(&device), "cudaGetDevice()");
  const uint64_t page = driver.create == nullptr ? 0 : PageBytes(driver, device);
  if (page == 0) return absl::FailedPreconditionError("this device has no memory that others can map");
  return Allocate(driver, device, (bytes + page - 1) / page * page);
}

absl::Status FreeMappable(const MappableMemory& memory) {
  const VirtualMemory& driver = VirtualMemory::Get();
  const auto address = reinterpret_cast<CUdeviceptr>(memory.data);
  // What may still use it ends first, as with cudaFree.
  FT_CUDA_CALL(cudaDeviceSynchronize(), "cudaDeviceSynchronize()");
  FT_DRIVER_CALL(driver.unmap(address, memory.bytes), "cuMemUnmap(%p)", memory.data);
  FT_DRIVER_CALL(driver.free(address, memory.bytes), "cuMemAddressFree(%p)", memory.data);
  return absl::OkStatus();
}

}  // namespace ft::cuda
