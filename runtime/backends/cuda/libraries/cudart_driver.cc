#include "runtime/backends/cuda/libraries/cudart_driver.h"

#include <cuda.h>
#include <cuda_runtime_api.h>

#include <array>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "runtime/backends/cuda/libraries/cuda_call.h"
#include "runtime/backends/cuda/libraries/mappable_memory.h"
#include "runtime/backends/cuda/libraries/nvml.h"
#include "runtime/backends/cuda/library_error.h"
#include "runtime/base/status_macros.h"

namespace ft::cuda {
namespace {

std::string VersionText(int version) { return absl::StrFormat("%d.%d", version / 1000, version % 1000 / 10); }

// Empty where there is none.
std::string PciAddress(int device) {
  std::array<char, 32> address = {};
  if (cudaDeviceGetPCIBusId(address.data(), address.size(), device) == cudaSuccess) return address.data();
  cudaGetLastError();  // not for who asks next, the launch of a kernel
  return "";
}

// Of the legacy stream, on which the synchronous calls run: they may return before the device is done.
absl::Status WaitForLegacyStream() {
  FT_CUDA_CALL(cudaStreamSynchronize(cudaStreamLegacy), "cudaStreamSynchronize(legacy)");
  return absl::OkStatus();
}

constexpr size_t kMostWords = 8;  // of one Store

// cuStreamBatchMemOp, which only the driver itself has; null where it has not.
using BatchOperation = CUresult(CUstream, unsigned, CUstreamBatchMemOpParams*, unsigned);
BatchOperation* Batch() {
  static BatchOperation* const found = reinterpret_cast<BatchOperation*>(FindInDriver("cuStreamBatchMemOp"));
  return found;
}

}  // namespace

absl::StatusOr<int> DeviceCount(int error, int count, int driver_version, int runtime_version) {
  switch (static_cast<cudaError_t>(error)) {
    case cudaSuccess:
      return count;
    case cudaErrorNoDevice:
      return 0;
    case cudaErrorInsufficientDriver:
      if (driver_version == 0) {
        return absl::FailedPreconditionError(
            "no CUDA driver was found, or none that loads (libcuda.so.1); install NVIDIA's driver, or use "
            "--device=cpu");
      }
      // Any driver of the same major version would do.
      return absl::FailedPreconditionError(absl::StrCat(
          "the driver knows CUDA ", VersionText(driver_version), ", this program needs ",
          VersionText(runtime_version / 1000 * 1000),
          "; update NVIDIA's driver, put the folder of its package cuda-compat (data center GPUs) on "
          "LD_LIBRARY_PATH, or use --device=cpu"));
    case cudaErrorStubLibrary:
      return absl::FailedPreconditionError(
          "the libcuda.so.1 that was found is the toolkit's stub, no driver; take its folder off "
          "LD_LIBRARY_PATH, or use --device=cpu");
    case cudaErrorSystemNotReady:
      return absl::FailedPreconditionError(
          "the CUDA devices are not ready; is nvidia-fabricmanager running? Else use --device=cpu");
    case cudaErrorSystemDriverMismatch:
      return absl::FailedPreconditionError(
          "libcuda.so.1 and the kernel's NVIDIA driver are of different versions; reload the driver or "
          "reboot, or use --device=cpu");
    default:
      return absl::FailedPreconditionError(absl::StrCat(
          "CUDA cannot be used: ", Describe(static_cast<cudaError_t>(error)), "; use --device=cpu"));
  }
}

absl::StatusOr<int> CudartDriver::CountDevices() {
  int count = 0, driver_version = 0, runtime_version = 0;
  const cudaError_t error = cudaGetDeviceCount(&count);
  if (error != cudaSuccess) cudaGetLastError();
  cudaDriverGetVersion(&driver_version);  // leaves 0 without a driver
  cudaRuntimeGetVersion(&runtime_version);
  return DeviceCount(error, count, driver_version, runtime_version);
}

absl::StatusOr<DeviceProperties> CudartDriver::Properties(int device) {
  cudaDeviceProp p;
  FT_CUDA_CALL(cudaGetDeviceProperties(&p, device), "cudaGetDeviceProperties(%d)", device);
  DeviceProperties properties{.name = p.name,
                              .major = p.major,
                              .minor = p.minor,
                              .multiprocessors = p.multiProcessorCount,
                              .shared_bytes_per_block = p.sharedMemPerBlockOptin,
                              .total_bytes = p.totalGlobalMem};
  properties.pci_address = PciAddress(device);
  properties.used_bytes = UsedBytes(properties.pci_address);
  FT_CUDA_CALL(cudaDriverGetVersion(&properties.driver_version), "cudaDriverGetVersion()");
  FT_CUDA_CALL(cudaRuntimeGetVersion(&properties.runtime_version), "cudaRuntimeGetVersion()");
  return properties;
}

absl::Status CudartDriver::SetDevice(int device) {
  // A thread that waits leaves its core to others: ranks share the host with data loading and compilers.
  // Has no effect on a device that this process uses already.
  FT_CUDA_CALL(cudaInitDevice(device, cudaDeviceScheduleBlockingSync, cudaInitDeviceFlagsAreValid),
               "cudaInitDevice(%d)", device);
  FT_CUDA_CALL(cudaSetDevice(device), "cudaSetDevice(%d)", device);
  return absl::OkStatus();
}

absl::StatusOr<FreeMemory> CudartDriver::MemoryInfo() {
  size_t free = 0, total = 0;
  FT_CUDA_CALL(cudaMemGetInfo(&free, &total), "cudaMemGetInfo()");
  return FreeMemory{.free = free, .total = total};
}

absl::StatusOr<void*> CudartDriver::Malloc(uint64_t bytes) {
  void* data = nullptr;
  FT_CUDA_CALL(cudaMalloc(&data, bytes), "cudaMalloc(%d)", bytes);
  return data;
}

absl::StatusOr<void*> CudartDriver::MallocHost(uint64_t bytes) {
  void* data = nullptr;
  FT_CUDA_CALL(cudaHostAlloc(&data, bytes, cudaHostAllocMapped | cudaHostAllocPortable), "cudaHostAlloc(%d)",
               bytes);
  return data;
}

absl::Status CudartDriver::Free(void* data) {
  FT_CUDA_CALL(cudaFree(data), "cudaFree(%p)", data);
  return absl::OkStatus();
}

absl::Status CudartDriver::FreeHost(void* data) {
  FT_CUDA_CALL(cudaFreeHost(data), "cudaFreeHost(%p)", data);
  return absl::OkStatus();
}

absl::Status CudartDriver::LockHost(void* data, uint64_t bytes) {
  FT_CUDA_CALL(cudaHostRegister(data, bytes, cudaHostRegisterMapped | cudaHostRegisterPortable),
               "cudaHostRegister(%p, %d)", data, bytes);
  return absl::OkStatus();
}

absl::Status CudartDriver::UnlockHost(void* data) {
  FT_CUDA_CALL(cudaHostUnregister(data), "cudaHostUnregister(%p)", data);
  return absl::OkStatus();
}

uint64_t CudartDriver::MappablePageBytes() { return ft::cuda::MappablePageBytes(); }

absl::StatusOr<MappableMemory> CudartDriver::MallocMappable(uint64_t bytes) {
  return ft::cuda::MallocMappable(bytes);
}

absl::Status CudartDriver::FreeMappable(const MappableMemory& memory) {
  return ft::cuda::FreeMappable(memory);
}

absl::Status CudartDriver::Zero(void* device_data, uint64_t bytes) {
  FT_CUDA_CALL(cudaMemset(device_data, 0, bytes), "cudaMemset(%p, 0, %d)", device_data, bytes);
  return WaitForLegacyStream();
}

absl::Status CudartDriver::Copy(void* dst, const void* src, uint64_t bytes) {
  FT_CUDA_CALL(cudaMemcpy(dst, src, bytes, cudaMemcpyDefault), "cudaMemcpy(%p, %p, %d)", dst, src, bytes);
  return WaitForLegacyStream();
}

absl::Status CudartDriver::CopyAsync(void* dst, const void* src, uint64_t bytes, StreamHandle stream) {
  FT_CUDA_CALL(cudaMemcpyAsync(dst, src, bytes, cudaMemcpyDefault, stream), "cudaMemcpyAsync(%p, %p, %d)",
               dst, src, bytes);
  return absl::OkStatus();
}

absl::StatusOr<StreamHandle> CudartDriver::CreateStream(bool high_priority) {
  int lowest = 0, highest = 0;
  FT_CUDA_CALL(cudaDeviceGetStreamPriorityRange(&lowest, &highest), "cudaDeviceGetStreamPriorityRange()");
  const int priority = high_priority ? highest : lowest;
  cudaStream_t stream = nullptr;
  FT_CUDA_CALL(cudaStreamCreateWithPriority(&stream, cudaStreamNonBlocking, priority),
               "cudaStreamCreateWithPriority(%d)", priority);
  return stream;
}

absl::Status CudartDriver::DestroyStream(StreamHandle stream) {
  FT_CUDA_CALL(cudaStreamDestroy(stream), "cudaStreamDestroy()");
  return absl::OkStatus();
}

absl::Status CudartDriver::Synchronize(StreamHandle stream) {
  FT_CUDA_CALL(cudaStreamSynchronize(stream), "cudaStreamSynchronize()");
  return absl::OkStatus();
}

absl::StatusOr<EventHandle> CudartDriver::CreateEvent(bool timing) {
  cudaEvent_t event = nullptr;
  const unsigned flags = cudaEventBlockingSync | (timing ? 0u : cudaEventDisableTiming);
  FT_CUDA_CALL(cudaEventCreateWithFlags(&event, flags), "cudaEventCreateWithFlags(%d)", flags);
  return event;
}

absl::Status CudartDriver::DestroyEvent(EventHandle event) {
  FT_CUDA_CALL(cudaEventDestroy(event), "cudaEventDestroy()");
  return absl::OkStatus();
}

absl::Status CudartDriver::Record(EventHandle event, StreamHandle stream) {
  FT_CUDA_CALL(cudaEventRecord(event, stream), "cudaEventRecord()");
  return absl::OkStatus();
}

absl::Status CudartDriver::Wait(EventHandle event, StreamHandle stream) {
  FT_CUDA_CALL(cudaStreamWaitEvent(stream, event, 0), "cudaStreamWaitEvent()");
  return absl::OkStatus();
}

absl::Status CudartDriver::Query(EventHandle event, bool& done) {
  const cudaError_t error = cudaEventQuery(event);
  done = error != cudaErrorNotReady;
  if (!done) {
    cudaGetLastError();  // counts as an error for CUDA
    return absl::OkStatus();
  }
  FT_CUDA_CALL(error, "cudaEventQuery()");
  return absl::OkStatus();
}

absl::Status CudartDriver::Await(EventHandle event) {
  FT_CUDA_CALL(cudaEventSynchronize(event), "cudaEventSynchronize()");
  return absl::OkStatus();
}

absl::StatusOr<float> CudartDriver::Elapsed(EventHandle begin, EventHandle end) {
  float ms = 0;
  FT_CUDA_CALL(cudaEventElapsedTime(&ms, begin, end), "cudaEventElapsedTime()");
  return ms;
}

absl::Status CudartDriver::Stamp(EventHandle event, StreamHandle stream) {
  cudaStreamCaptureStatus capture = cudaStreamCaptureStatusNone;
  FT_CUDA_CALL(cudaStreamIsCapturing(stream, &capture), "cudaStreamIsCapturing()");
  // Outside of a capture CUDA refuses that flag.
  const unsigned flags =
      capture == cudaStreamCaptureStatusNone ? cudaEventRecordDefault : cudaEventRecordExternal;
  FT_CUDA_CALL(cudaEventRecordWithFlags(event, stream, flags), "cudaEventRecordWithFlags(%d)", flags);
  return absl::OkStatus();
}

absl::Status CudartDriver::Store(std::initializer_list<WordWrite> words, StreamHandle stream) {
  std::array<CUstreamBatchMemOpParams, kMostWords> operations = {};
  if (words.size() > operations.size())
    return absl::InternalError(absl::StrFormat("%d words are stored at once", words.size()));
  unsigned count = 0;
  for (const WordWrite& word : words) {
    auto& write = operations[count++].writeValue;
    write.operation = CU_STREAM_MEM_OP_WRITE_VALUE_64;
    write.address = reinterpret_cast<CUdeviceptr>(word.address);
    write.value64 = word.value;
    write.flags = CU_STREAM_WRITE_VALUE_DEFAULT;
  }
  FT_DRIVER_CALL(Batch()(stream, count, operations.data(), 0), "cuStreamBatchMemOp(%d)", count);
  return absl::OkStatus();
}

bool CudartDriver::CanStore() {
  int device = 0;
  return Batch() != nullptr && cudaGetDevice(&device) == cudaSuccess &&
         DriverSaysHas(CU_DEVICE_ATTRIBUTE_CAN_USE_64_BIT_STREAM_MEM_OPS, device);
}

absl::Status CudartDriver::BeginCapture(StreamHandle origin) {
  // Threads that watch collectives go on calling CUDA meanwhile.
  FT_CUDA_CALL(cudaStreamBeginCapture(origin, cudaStreamCaptureModeThreadLocal),
               "cudaStreamBeginCapture(thread-local)");
  return absl::OkStatus();
}

absl::StatusOr<GraphHandle> CudartDriver::EndCapture(StreamHandle origin) {
  cudaGraph_t graph = nullptr;
  FT_CUDA_CALL(cudaStreamEndCapture(origin, &graph), "cudaStreamEndCapture()");
  cudaGraphExec_t executable = nullptr;
  // Else all of it runs with the priority of the stream that it is launched on.
  const cudaError_t error = cudaGraphInstantiate(&executable, graph, cudaGraphInstantiateFlagUseNodePriority);
  cudaGraphDestroy(graph);
  FT_CUDA_CALL(error, "cudaGraphInstantiate()");
  // Now rather than in the first launch.
  if (const cudaError_t upload = cudaGraphUpload(executable, origin); upload != cudaSuccess) {
    cudaGraphExecDestroy(executable);
    FT_CUDA_CALL(upload, "cudaGraphUpload()");
  }
  return executable;
}

absl::Status CudartDriver::LaunchGraph(GraphHandle graph, StreamHandle stream) {
  FT_CUDA_CALL(cudaGraphLaunch(graph, stream), "cudaGraphLaunch()");
  return absl::OkStatus();
}

absl::Status CudartDriver::DestroyGraph(GraphHandle graph) {
  FT_CUDA_CALL(cudaGraphExecDestroy(graph), "cudaGraphExecDestroy()");
  return absl::OkStatus();
}

absl::Status CudartDriver::LaunchHost(void (*function)(void*), void* data, StreamHandle stream) {
  FT_CUDA_CALL(cudaLaunchHostFunc(stream, function, data), "cudaLaunchHostFunc()");
  return absl::OkStatus();
}

absl::Status CudartDriver::LaunchStatus(int error, const char* what) {
  if (error == 0) return absl::OkStatus();
  cudaGetLastError();
  std::string why = DescribeLibraryError(error);
  if (why.empty()) why = Describe(static_cast<cudaError_t>(error));
  return absl::InternalError(absl::StrCat(what, " failed: ", why));
}

}  // namespace ft::cuda
