#include "test/doubles/cuda/emulated_driver.h"

#include <algorithm>
#include <cstring>

#include "fmt/format.h"
#include "runtime/base/status_macros.h"
#include "test/doubles/cuda/capture.h"

namespace ft::cuda::emulation {
namespace {

absl::Status Failed(const char* call, const std::string& why) {
  return absl::InternalError(fmt::format("{} failed: {} (emulated)", call, why));
}

absl::Status Failed(const char* call, const absl::Status& why) {
  return Failed(call, std::string(why.message()));
}

}  // namespace

EmulatedMachine& Machine() {
  static EmulatedMachine machine;
  return machine;
}

std::string Call::ToString() const {
  std::string text = what;
  if (stream >= 0) text += fmt::format(" s{}", stream);
  if (event >= 0) text += fmt::format(" e{}", event);
  if (bytes > 0) text += fmt::format(" {}", bytes);
  if (captured) text += " captured";
  return text;
}

EmulatedDriver::EmulatedDriver(EmulatedMachine machine) : machine_(std::move(machine)) {}

EmulatedDriver::~EmulatedDriver() = default;

std::vector<Call> EmulatedDriver::Log() const {
  Lock lock(mutex_);
  return log_;
}

void EmulatedDriver::ClearLog() {
  Lock lock(mutex_);
  log_.clear();
}

void EmulatedDriver::Note(std::string what, const EmulatedStream* stream, const CUevent_st* event,
                          uint64_t bytes) {
  log_.push_back({.what = std::move(what),
                  .stream = stream == nullptr ? -1 : stream->number,
                  .event = event == nullptr ? -1 : event->number,
                  .bytes = bytes,
                  .captured = stream != nullptr && stream->capture != nullptr});
}

absl::Status EmulatedDriver::Failure(const char* call) const {
  const auto failure = failures.find(call);
  return failure == failures.end() ? absl::OkStatus() : failure->second;
}

absl::Status EmulatedDriver::CheckThread(const char* call) const {
  FT_RETURN_IF_ERROR(Failure(call));
  if (!lost_.ok()) return Failed(call, fmt::format("the device was lost: {}", std::string(lost_.message())));
  if (threads_.count(std::this_thread::get_id()) == 0)
    return Failed(call, "this thread has not called SetDevice");
  return absl::OkStatus();
}

absl::StatusOr<EmulatedStream*> EmulatedDriver::FindStream(StreamHandle stream, const char* call) const {
  FT_RETURN_IF_ERROR(CheckThread(call));
  for (const auto& known : streams_) {
    if (known.get() != stream) continue;
    if (known->destroyed) return Failed(call, fmt::format("stream {} was destroyed", known->number));
    return known.get();
  }
  return Failed(call, "that is no stream of this device");
}

absl::StatusOr<EventHandle> EmulatedDriver::FindEvent(EventHandle event, const char* call) const {
  FT_RETURN_IF_ERROR(CheckThread(call));
  for (const auto& known : events_) {
    if (known.get() != event) continue;
    if (known->destroyed) return Failed(call, fmt::format("event {} was destroyed", known->number));
    return known.get();
  }
  return Failed(call, "that is no event of this device");
}

absl::StatusOr<GraphHandle> EmulatedDriver::FindGraph(GraphHandle graph, const char* call) const {
  FT_RETURN_IF_ERROR(CheckThread(call));
  for (const auto& known : graphs_) {
    if (known.get() != graph) continue;
    if (known->destroyed) return Failed(call, fmt::format("graph {} was destroyed", known->number));
    return known.get();
  }
  return Failed(call, "that is no graph of this device");
}

std::shared_ptr<Capture> EmulatedDriver::OwnCapture() const {
  for (const auto& capture : captures_) {
    if (capture->thread == std::this_thread::get_id()) return capture;
  }
  return nullptr;
}

absl::Status EmulatedDriver::CheckNotCapturing(const char* call) {
  FT_RETURN_IF_ERROR(CheckThread(call));
  const std::shared_ptr<Capture> capture = OwnCapture();
  if (capture == nullptr) return absl::OkStatus();
  if (capture->broken.empty()) capture->broken = fmt::format("{} was called", call);
  return Failed(call, "not permitted while this thread captures");
}

absl::Status EmulatedDriver::CheckMayEnqueue(EmulatedStream& stream, const char* call) {
  const std::shared_ptr<Capture> capture = OwnCapture();
  if (stream.capture != nullptr) {
    if (stream.capture->thread != std::this_thread::get_id())
      return Failed(call, fmt::format("stream {} is being captured by another thread", stream.number));
    if (!stream.capture->broken.empty())
      return Failed(call, fmt::format("the capture is invalid since {}", stream.capture->broken));
    return absl::OkStatus();
  }
  if (capture == nullptr) return absl::OkStatus();
  if (capture->broken.empty())
    capture->broken = fmt::format("stream {} was used without having joined", stream.number);
  return Failed(call, fmt::format("stream {} has not joined the capture of stream {}", stream.number,
                                  capture->origin->number));
}

absl::Status EmulatedDriver::CheckRange(const void* data, uint64_t bytes, bool must_be_known,
                                        const char* call) const {
  const absl::StatusOr<bool> held = memory_.Holds(data, bytes);
  if (!held.ok()) return Failed(call, held.status());
  if (*held || !must_be_known) return absl::OkStatus();
  return Failed(call, fmt::format("{} is neither memory of the device nor page-locked", data));
}

absl::StatusOr<int> EmulatedDriver::CountDevices() {
  if (!machine_.no_driver.empty()) return absl::FailedPreconditionError(machine_.no_driver);
  return machine_.visible.has_value() ? static_cast<int>(machine_.visible->size()) : machine_.devices;
}

absl::StatusOr<DeviceProperties> EmulatedDriver::Properties(int device) {
  FT_ASSIGN_OR_RETURN(const int devices, CountDevices());
  if (device < 0 || device >= devices)
    return Failed("Properties", fmt::format("there is no device {}", device));
  DeviceProperties properties = machine_.properties;
  const int number = machine_.visible.has_value() ? (*machine_.visible)[static_cast<size_t>(device)] : device;
  properties.pci_address = fmt::format("0000:{:02X}:00.0", number + 1);
  Lock lock(mutex_);
  if (machine_.knows_used) properties.used_bytes = Used();
  return properties;
}

absl::Status EmulatedDriver::SetDevice(int device) {
  FT_ASSIGN_OR_RETURN(const int devices, CountDevices());
  if (device < 0 || device >= devices)
    return Failed("SetDevice", fmt::format("there is no device {}", device));
  FT_RETURN_IF_ERROR(Failure("SetDevice"));
  Lock lock(mutex_);
  Note(fmt::format("SetDevice {}", device));
  threads_.insert(std::this_thread::get_id());
  return absl::OkStatus();
}

uint64_t EmulatedDriver::Used() const {
  return machine_.others_bytes + (threads_.empty() ? 0 : machine_.context_bytes) +
         memory_.bytes(MemoryKind::kDevice);
}

absl::StatusOr<FreeMemory> EmulatedDriver::MemoryInfo() {
  Lock lock(mutex_);
  FT_RETURN_IF_ERROR(CheckThread("MemoryInfo"));
  const uint64_t total = machine_.properties.total_bytes;
  const uint64_t used = Used();
  return FreeMemory{.free = total - std::min(total, used), .total = total};
}

absl::StatusOr<void*> EmulatedDriver::Allocate(uint64_t bytes, uint64_t page_bytes, const char* call) {
  FT_ASSIGN_OR_RETURN(const FreeMemory memory, MemoryInfo());
  Lock lock(mutex_);
  FT_RETURN_IF_ERROR(CheckNotCapturing(call));
  if (bytes > memory.free)
    return absl::ResourceExhaustedError(
        fmt::format("{}({}) failed: out of memory (emulated), {} are free", call, bytes, memory.free));
  void* data = memory_.Allocate(MemoryKind::kDevice, bytes, page_bytes);
  if (data == nullptr && bytes > 0)
    return absl::ResourceExhaustedError(fmt::format("{}({}) failed: the host has no memory", call, bytes));
  Note(call, nullptr, nullptr, bytes);
  return data;
}

absl::StatusOr<void*> EmulatedDriver::Malloc(uint64_t bytes) { return Allocate(bytes, 0, "Malloc"); }

absl::StatusOr<MappableMemory> EmulatedDriver::MallocMappable(uint64_t bytes) {
  const uint64_t page = MappablePageBytes();
  if (page == 0) return absl::FailedPreconditionError("MallocMappable failed: not supported (emulated)");
  FT_ASSIGN_OR_RETURN(void* const data, Allocate(bytes, page, "MallocMappable"));
  return MappableMemory{.data = data, .bytes = (bytes + page - 1) / page * page};
}

bool EmulatedDriver::CanLock(uint64_t bytes) const {
  return bytes <= machine_.pinnable_bytes - memory_.bytes(MemoryKind::kPinned);
}

absl::StatusOr<void*> EmulatedDriver::MallocHost(uint64_t bytes) {
  Lock lock(mutex_);
  FT_RETURN_IF_ERROR(CheckNotCapturing("MallocHost"));
  void* data = CanLock(bytes) ? memory_.Allocate(MemoryKind::kPinned, bytes) : nullptr;
  if (data == nullptr && bytes > 0)
    return absl::ResourceExhaustedError(
        fmt::format("MallocHost({}) failed: out of memory (emulated)", bytes));
  Note("MallocHost", nullptr, nullptr, bytes);
  return data;
}

absl::Status EmulatedDriver::Release(void* data, bool in_pages, const char* call) {
  Lock lock(mutex_);
  FT_RETURN_IF_ERROR(CheckNotCapturing(call));
  // It waits for the device.
  for (size_t i = 0; i < streams_.size(); ++i) FT_RETURN_IF_ERROR(RunAll(*streams_[i], lock, call));
  if (const absl::Status status = memory_.Release(MemoryKind::kDevice, data, in_pages); !status.ok())
    return Failed(call, status);
  Note(call);
  return absl::OkStatus();
}

absl::Status EmulatedDriver::Free(void* data) { return Release(data, /*in_pages=*/false, "Free"); }

absl::Status EmulatedDriver::FreeMappable(const MappableMemory& memory) {
  return Release(memory.data, /*in_pages=*/true, "FreeMappable");
}

absl::Status EmulatedDriver::FreeHost(void* data) {
  Lock lock(mutex_);
  FT_RETURN_IF_ERROR(CheckNotCapturing("FreeHost"));
  for (size_t i = 0; i < streams_.size(); ++i) FT_RETURN_IF_ERROR(RunAll(*streams_[i], lock, "FreeHost"));
  if (const absl::Status status = memory_.Release(MemoryKind::kPinned, data); !status.ok())
    return Failed("FreeHost", status);
  Note("FreeHost");
  return absl::OkStatus();
}

absl::Status EmulatedDriver::LockHost(void* data, uint64_t bytes) {
  Lock lock(mutex_);
  FT_RETURN_IF_ERROR(CheckNotCapturing("LockHost"));
  if (!CanLock(bytes))
    return absl::ResourceExhaustedError(fmt::format("LockHost({}) failed: out of memory (emulated)", bytes));
  if (const absl::Status status = memory_.Lock(data, bytes); !status.ok()) return Failed("LockHost", status);
  Note("LockHost", nullptr, nullptr, bytes);
  return absl::OkStatus();
}

absl::Status EmulatedDriver::UnlockHost(void* data) {
  Lock lock(mutex_);
  FT_RETURN_IF_ERROR(CheckNotCapturing("UnlockHost"));
  for (size_t i = 0; i < streams_.size(); ++i) FT_RETURN_IF_ERROR(RunAll(*streams_[i], lock, "UnlockHost"));
  if (const absl::Status status = memory_.Unlock(data); !status.ok()) return Failed("UnlockHost", status);
  Note("UnlockHost");
  return absl::OkStatus();
}

absl::Status EmulatedDriver::Zero(void* device_data, uint64_t bytes) {
  Lock lock(mutex_);
  FT_RETURN_IF_ERROR(CheckNotCapturing("Zero"));
  FT_RETURN_IF_ERROR(CheckRange(device_data, bytes, true, "Zero"));
  if (bytes > 0) std::memset(device_data, 0, bytes);
  Note("Zero", nullptr, nullptr, bytes);
  return absl::OkStatus();
}

absl::Status EmulatedDriver::Copy(void* dst, const void* src, uint64_t bytes) {
  Lock lock(mutex_);
  FT_RETURN_IF_ERROR(CheckNotCapturing("Copy"));
  FT_RETURN_IF_ERROR(CheckRange(dst, bytes, false, "Copy"));
  FT_RETURN_IF_ERROR(CheckRange(src, bytes, false, "Copy"));
  if (!*memory_.Holds(dst, bytes) && !*memory_.Holds(src, bytes))
    return Failed("Copy", "neither end is memory of the device");
  if (bytes > 0) std::memcpy(dst, src, bytes);
  Note("Copy", nullptr, nullptr, bytes);
  return absl::OkStatus();
}

absl::Status EmulatedDriver::CopyAsync(void* dst, const void* src, uint64_t bytes, StreamHandle handle) {
  Lock lock(mutex_);
  FT_ASSIGN_OR_RETURN(EmulatedStream* const stream, FindStream(handle, "CopyAsync"));
  FT_RETURN_IF_ERROR(CheckRange(dst, bytes, true, "CopyAsync"));
  FT_RETURN_IF_ERROR(CheckRange(src, bytes, true, "CopyAsync"));
  lock.unlock();
  const auto copy = [dst, src, bytes] {
    if (bytes > 0) std::memcpy(dst, src, bytes);
    return kSuccess;
  };
  return LaunchStatus(SubmitTo(*stream, "CopyAsync", copy, bytes), "CopyAsync");
}

absl::Status EmulatedDriver::LaunchStatus(int error, const char* what) {
  FT_RETURN_IF_ERROR(Failure(what));
  if (error == kSuccess) return absl::OkStatus();
  return Failed(what, fmt::format("{}, error {}", LastMessage(), error));
}

}  // namespace ft::cuda::emulation
