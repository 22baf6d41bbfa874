#include "runtime/backends/cuda/device/cuda_device.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "runtime/backends/cuda/device/cuda_memory.h"
#include "runtime/backends/cuda/device/cuda_recording.h"
#include "runtime/backends/cuda/device/cuda_stream.h"
#include "runtime/backends/cuda/device/host_kernel.h"
#include "runtime/backends/cuda/device/kernel_marks.h"
#include "runtime/backends/cuda/device/numa_node.h"
#include "runtime/backends/cuda/device/peak_flops.h"
#include "runtime/backends/cuda/device/word_marks.h"
#include "runtime/base/status_macros.h"

namespace ft::cuda {
namespace {

constexpr char kKernelMarksNote[] = "positions of streams are marked by kernels, because of ";

}  // namespace

absl::StatusOr<std::unique_ptr<CudaDevice>> CudaDevice::Create(Platform platform, KernelTable kernels,
                                                               const CudaDeviceOptions& options) {
  std::unique_ptr<CudaDevice> device(new CudaDevice(std::move(platform), std::move(kernels), options));
  const absl::Status probe = device->Probe();
  if (probe.ok()) return device;
  const DeviceProperties& properties = device->properties();
  return absl::FailedPreconditionError(absl::StrFormat(
      "CUDA device %d (%s, compute capability %d.%d) does not run this program's kernels: %s; was it built "
      "for that architecture? (-DFT_CUDA_ARCHITECTURES=%d%d)",
      device->number(), properties.name, properties.major, properties.minor, std::string(probe.message()),
      properties.major, properties.minor));
}

CudaDevice::CudaDevice(Platform platform, KernelTable kernels, const CudaDeviceOptions& options)
    : platform_(std::move(platform)),
      kernels_(std::move(kernels)),
      options_(options),
      state_(*platform_.driver, platform_.device, platform_.ranges.get()) {}

// The smallest of our kernels, so that a program without code for this device says so now; and what marks are
// made of.
absl::Status CudaDevice::Probe() {
  FT_ASSIGN_OR_RETURN(const std::unique_ptr<CudaStream> stream, CudaStream::Create(state_, "probe"));
  FT_ASSIGN_OR_RETURN(const std::unique_ptr<KernelMarks> marks, KernelMarks::Create(state_.driver));
  FT_RETURN_IF_ERROR(marks->TaskEnd(stream->handle()));
  FT_RETURN_IF_ERROR(state_.driver.Synchronize(stream->handle()));
  const absl::Status works = WordMarks::Try(state_.driver, stream->handle());
  state_.word_marks = works.ok();
  if (!works.ok()) notes_.push_back(absl::StrCat(kKernelMarksNote, std::string(works.message())));
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<Memory>> CudaDevice::Allocate(uint64_t bytes) {
  return AllocateDeviceMemory(state_, platform_.properties.name, bytes);
}

uint64_t CudaDevice::mappable_page_bytes() {
  return state_.MakeCurrent() ? state_.driver.MappablePageBytes() : 0;
}

absl::StatusOr<std::unique_ptr<Memory>> CudaDevice::AllocateMappable(uint64_t bytes) {
  std::string note;
  absl::StatusOr<std::unique_ptr<Memory>> memory =
      AllocateMappableMemory(state_, platform_.properties.name, bytes, note);
  if (!note.empty()) notes_.push_back(std::move(note));
  return memory;
}

absl::StatusOr<std::unique_ptr<Memory>> CudaDevice::AllocateHost(uint64_t bytes) {
  std::string note;
  absl::StatusOr<std::unique_ptr<Memory>> memory =
      AllocatePinnedMemory(state_, bytes, NumaNodeOf(platform_.properties.pci_address), note);
  if (!note.empty()) notes_.push_back(std::move(note));
  return memory;
}

absl::StatusOr<std::unique_ptr<Stream>> CudaDevice::CreateStream(std::string name, size_t max_enqueued) {
  return CudaStream::Create(state_, std::move(name));
}

std::unique_ptr<Event> CudaDevice::CreateEvent() {
  absl::StatusOr<EventHandle> handle = nullptr;
  if (state_.MakeCurrent()) handle = state_.driver.CreateEvent(/*timing=*/false);
  state_.Check(handle.status());
  return std::make_unique<CudaEvent>(state_, handle.ok() ? *handle : nullptr);
}

absl::StatusOr<std::unique_ptr<Kernel>> CudaDevice::CreateKernel(const std::string& name,
                                                                 const KernelOperands& operands,
                                                                 const KernelAttributes& attributes) {
  const Maker maker = kernels_.Find(name);
  if (maker == nullptr)
    return absl::FailedPreconditionError(absl::StrCat("the cuda device has no kernel '", name, "'"));
  if (!state_.MakeCurrent()) return state_.failure.status();
  return maker(KernelContext{.operands = operands,
                             .attributes = attributes,
                             .properties = platform_.properties,
                             .products = *platform_.products,
                             .attention = platform_.attention.get(),
                             .attention_choice = options_.platform.attention,
                             .code = platform_.code.get(),
                             .deterministic = options_.platform.deterministic,
                             .notes = notes_});
}

absl::StatusOr<std::unique_ptr<Kernel>> CudaDevice::CreateHostKernel(const std::string& name,
                                                                     const KernelOperands& operands,
                                                                     const KernelAttributes& attributes) {
  if (options_.host_kernels == nullptr)
    return absl::FailedPreconditionError(
        absl::StrCat("the cuda device was opened without kernels of the host, such as '", name, "'"));
  FT_ASSIGN_OR_RETURN(std::unique_ptr<HostTask> task,
                      options_.host_kernels->Create(name, operands, attributes));
  return std::make_unique<HostKernel>(state_, std::move(task));
}

absl::Status CudaDevice::Write(void* device_data, const void* host_data, uint64_t bytes) {
  if (!state_.MakeCurrent()) return state_.failure.status();
  return state_.driver.Copy(device_data, host_data, bytes);
}

absl::Status CudaDevice::Read(void* host_data, const void* device_data, uint64_t bytes) {
  if (!state_.MakeCurrent()) return state_.failure.status();
  return state_.driver.Copy(host_data, device_data, bytes);
}

absl::StatusOr<std::unique_ptr<Recording>> CudaDevice::Record(Stream& origin,
                                                              absl::FunctionRef<void()> enqueue) {
  if (state_.failure.failed() || !state_.MakeCurrent()) return state_.failure.status();
  const StreamHandle handle = static_cast<CudaStream&>(origin).handle();
  FT_RETURN_IF_ERROR(state_.driver.BeginCapture(handle));
  state_.recording = true;
  enqueue();
  state_.recording = false;
  // Also after a failure: the stream has to leave its capture.
  absl::StatusOr<GraphHandle> graph = state_.driver.EndCapture(handle);
  state_.Check(graph.status());
  CudaRecording::Replays replays;
  for (StreamMarks* marks : state_.marks)
    if (std::unique_ptr<StreamMarks::Replay> replay = marks->EndRecording())
      replays.push_back(std::move(replay));
  std::unique_ptr<Recording> recording;
  if (graph.ok()) recording = std::make_unique<CudaRecording>(state_, *graph, handle, std::move(replays));
  if (state_.failure.failed()) return state_.failure.status();
  return recording;
}

double CudaDevice::peak_flops(DType dtype) const {
  return PeakFlops(platform_.properties.name, dtype, options_.platform.allow_tf32);
}

double CudaDevice::utilization_percent() { return platform_.utilization ? platform_.utilization() : -1; }

std::string CudaDevice::description() const {
  const DeviceProperties& p = platform_.properties;
  return absl::StrFormat(
      "CUDA device %d: %s, compute capability %d.%d, %d multiprocessors, %.1f GiB; driver for CUDA %d.%d",
      platform_.device, p.name, p.major, p.minor, p.multiprocessors,
      static_cast<double>(p.total_bytes) / (1 << 30), p.driver_version / 1000, p.driver_version % 1000 / 10);
}

uint64_t CudaDevice::used_bytes() {
  if (!state_.MakeCurrent()) return 0;
  const absl::StatusOr<FreeMemory> memory = state_.driver.MemoryInfo();
  return memory.ok() ? memory->total - memory->free : 0;
}

}  // namespace ft::cuda
