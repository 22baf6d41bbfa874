// What tests of NCCL on a GPU share: a GPU with memory and a stream, and collectives that are enqueued,
// recorded and replayed there.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "runtime/backends/cuda/device/open_cuda_device.h"
#include "runtime/base/convert_elements.h"
#include "runtime/collective/nccl/device_side.h"
#include "runtime/collective/nccl/nccl_api.h"
#include "runtime/device/device.h"

namespace ft::conformance {

using Bytes = std::vector<std::byte>;
inline constexpr absl::Duration kPatience = absl::Seconds(60);

// What a stream does with a communicator: once as it is enqueued, then recorded and replayed, as a training
// step is.
class Collectives final : public HostTask {
 public:
  explicit Collectives(std::function<absl::Status()> calls) : calls_(std::move(calls)) {
    info_.title = "collectives";
  }
  absl::Status Run() override { return calls_(); }

  absl::Status Once(Device& device, Stream& stream) {
    Enqueue(stream);
    stream.Synchronize();
    return device.status();
  }
  absl::StatusOr<std::unique_ptr<Recording>> Record(Device& device, Stream& stream) {
    return device.Record(stream, [&] { Enqueue(stream); });
  }

 private:
  void Enqueue(Stream& stream) {
    const Command command = Command::Call(this, &info_);
    stream.Enqueue(absl::MakeConstSpan(&command, 1));
  }
  const std::function<absl::Status()> calls_;
  CommandInfo info_;
};

// A GPU, and memory on it.
class OnGpu {
 public:
  static absl::StatusOr<OnGpu> Open(int local_rank, uint64_t bytes) {
    // cuDNN is not needed, and may not be there.
    auto opened = cuda::OpenCudaDevice(
        local_rank, {.platform = {.attention = cuda::AttentionChoice::kOwn, .deterministic = true}});
    if (!opened.ok()) return opened.status();
    OnGpu gpu;
    gpu.opened_ = *std::move(opened);
    auto memory = gpu.device().Allocate(bytes);
    if (!memory.ok()) return memory.status();
    gpu.memory_ = *std::move(memory);
    auto stream = gpu.device().CreateStream("reduce", 1);
    if (!stream.ok()) return stream.status();
    gpu.stream_ = *std::move(stream);
    return gpu;
  }
  // From now on its memory is in pages that other processes can map.
  absl::Status MakeMappable() {
    auto memory = device().AllocateMappable(memory_->bytes());
    if (memory.ok()) memory_ = *std::move(memory);
    return memory.status();
  }

  Device& device() const { return *opened_.device; }
  Stream& stream() const { return *stream_; }
  const Memory& memory() const { return *memory_; }
  std::byte* at(uint64_t offset) const { return static_cast<std::byte*>(memory_->data()) + offset; }
  CudaSide Side(std::shared_ptr<nccl::NcclApi> api) const {
    return {.driver = opened_.driver, .rank_sum = opened_.rank_sum, .nccl = std::move(api)};
  }
  Bytes Read(uint64_t offset, size_t bytes) const {
    Bytes read(bytes);
    EXPECT_TRUE(device().Read(read.data(), at(offset), bytes).ok());
    return read;
  }
  void Write(uint64_t offset, const Bytes& bytes) const {
    EXPECT_TRUE(device().Write(at(offset), bytes.data(), bytes.size()).ok());
  }

 private:
  cuda::OpenedDevice opened_;
  std::unique_ptr<Memory> memory_;
  std::unique_ptr<Stream> stream_;
};

// Numbers of all magnitudes from 2^-12 to 2^11, whose sum depends on the order and on where it is rounded.
inline float Rough(uint32_t seed, size_t i) {
  uint32_t x = static_cast<uint32_t>(i) * 2654435761u + seed * 40503u + 77u;
  x ^= x >> 15, x *= 2246822519u, x ^= x >> 13;
  return (static_cast<float>(x & 0xFFFF) - 32768.0f) * std::ldexp(1.0f, static_cast<int>(x >> 16 & 15) - 20);
}

inline Bytes Numbers(uint32_t seed, size_t count, DType dtype) {
  std::vector<float> values(count);
  for (size_t i = 0; i < count; ++i) values[i] = Rough(seed, i);
  Bytes bytes(count * SizeOf(dtype));
  ConvertElements(DType::kF32, reinterpret_cast<const std::byte*>(values.data()), dtype, bytes.data(), count);
  return bytes;
}

}  // namespace ft::conformance
