#include "test/doubles/cuda/emulated_bench.h"

#include <cstdlib>
#include <cstring>
#include <map>

#include "fmt/format.h"
#include "runtime/backends/cuda/register.h"
#include "test/doubles/cuda/fiber.h"
#include "test/doubles/cuda/launch.h"

namespace ft::cuda::emulation {
namespace {

// Blocks of the heap are exactly as long as asked for, so that AddressSanitizer sees what is behind them.
// Large ones are kept for the next buffer of that size: the system takes longer to give one than a case to
// run.
class SpareBlocks {
 public:
  static SpareBlocks& Own() {
    static thread_local SpareBlocks spare;
    return spare;
  }
  ~SpareBlocks() {
    for (const auto& [bytes, block] : blocks_) std::free(block);
  }

  void* Take(uint64_t bytes) {
    void* block = nullptr;
    if (const auto spare = blocks_.find(bytes); spare != blocks_.end()) {
      block = spare->second;
      blocks_.erase(spare);
    } else if (posix_memalign(&block, 256, bytes) != 0) {
      return nullptr;
    }
    return block;
  }
  void Return(void* block, uint64_t bytes) {
    if (bytes < kLarge) return std::free(block);
    blocks_.emplace(bytes, block);
    if (blocks_.size() <= kSpare) return;
    std::free(blocks_.begin()->second);  // the smallest
    blocks_.erase(blocks_.begin());
  }

 private:
  static constexpr uint64_t kLarge = 1 << 20;
  static constexpr size_t kSpare = 8;
  std::multimap<uint64_t, void*> blocks_;
};

class HeapMemory final : public Memory {
 public:
  // Aligned to 64 bytes means: to no more.
  HeapMemory(uint64_t bytes, size_t alignment)
      : bytes_(bytes), shift_(alignment % 256), block_(SpareBlocks::Own().Take(bytes_ + shift_)) {}
  ~HeapMemory() override { SpareBlocks::Own().Return(block_, bytes_ + shift_); }
  void* data() const override {
    return block_ == nullptr ? nullptr : static_cast<std::byte*>(block_) + shift_;
  }
  uint64_t bytes() const override { return bytes_; }

 private:
  uint64_t bytes_;
  size_t shift_;
  void* block_;
};

}  // namespace

EmulatedBench::EmulatedBench(bool fuses) : products_(fuses) {
  RegisterCudaKernels(kernels_);
  properties_ = {.name = "emulated H200",
                 .major = 9,
                 .minor = 0,
                 .multiprocessors = 132,
                 .shared_bytes_per_block = 227 << 10,
                 .total_bytes = uint64_t{141} << 30,
                 .driver_version = 13000,
                 .runtime_version = 13000};
}

uint64_t EmulatedBench::guard_bytes() const { return FT_FIBER_ASAN ? 0 : 256; }

absl::StatusOr<std::unique_ptr<Memory>> EmulatedBench::Allocate(uint64_t bytes, size_t alignment) {
  auto memory = std::make_unique<HeapMemory>(bytes, alignment);
  if (memory->data() == nullptr) return absl::ResourceExhaustedError(fmt::format("no {} bytes", bytes));
  return memory;
}

absl::Status EmulatedBench::Write(void* device_data, const void* host_data, uint64_t bytes) {
  std::memcpy(device_data, host_data, bytes);
  return absl::OkStatus();
}

absl::Status EmulatedBench::Fill(void* device_data, std::byte value, uint64_t bytes) {
  std::memset(device_data, std::to_integer<int>(value), bytes);
  return absl::OkStatus();
}

absl::Status EmulatedBench::Read(void* host_data, const void* device_data, uint64_t bytes) {
  std::memcpy(host_data, device_data, bytes);
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<Kernel>> EmulatedBench::Create(const std::string& op,
                                                              const KernelOperands& operands,
                                                              const KernelAttributes& attributes) {
  const Maker maker = kernels_.Find(op);
  if (maker == nullptr) return absl::NotFoundError(fmt::format("the cuda device has no kernel '{}'", op));
  return maker({.operands = operands,
                .attributes = attributes,
                .properties = properties_,
                .products = products_,
                .attention = nullptr,
                .attention_choice = AttentionChoice::kOwn,
                .notes = notes_});
}

absl::Status EmulatedBench::Run(Kernel& kernel) {
  const int error = static_cast<CudaKernel&>(kernel).Launch(nullptr);
  if (error == kSuccess) return absl::OkStatus();
  return absl::InternalError(fmt::format("{} (error {})", LastMessage(), error));
}

}  // namespace ft::cuda::emulation
