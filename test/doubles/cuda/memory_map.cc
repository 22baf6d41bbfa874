#include "test/doubles/cuda/memory_map.h"

#include <cstdlib>
#include <cstring>

#include "fmt/format.h"
#include "test/doubles/cuda/fiber.h"

namespace ft::cuda::emulation {
namespace {

constexpr int kNewMemory = 0xCD;
// As cudaMalloc aligns.
constexpr size_t kAlignment = 256;
constexpr size_t kGuard = FT_FIBER_ASAN ? 0 : 256;

}  // namespace

MemoryMap::~MemoryMap() {
  for (const auto& [begin, allocation] : allocations_)
    if (!allocation.is_locked) std::free(reinterpret_cast<void*>(begin));
}

void* MemoryMap::Allocate(MemoryKind kind, uint64_t bytes, uint64_t page_bytes) {
  void* data = nullptr;
  if (bytes == 0 || posix_memalign(&data, kAlignment, bytes + kGuard) != 0) return nullptr;
  std::memset(data, kNewMemory, bytes + kGuard);
  const bool in_pages = page_bytes > 0;
  const uint64_t taken = in_pages ? (bytes + page_bytes - 1) / page_bytes * page_bytes : bytes;
  allocations_[reinterpret_cast<uintptr_t>(data)] = {kind, bytes, taken, /*is_locked=*/false, in_pages};
  (kind == MemoryKind::kDevice ? device_bytes_ : pinned_bytes_) += taken;
  return data;
}

absl::Status MemoryMap::Release(MemoryKind kind, void* data, bool in_pages) {
  if (data == nullptr) return absl::OkStatus();
  const auto found = allocations_.find(reinterpret_cast<uintptr_t>(data));
  if (found == allocations_.end() || found->second.kind != kind || found->second.is_locked ||
      found->second.in_pages != in_pages)
    return absl::InvalidArgumentError(fmt::format("{} was not allocated so, or is free already", data));
  const uint64_t bytes = found->second.bytes;
  const auto* guard = static_cast<const unsigned char*>(data) + bytes;
  bool intact = true;
  for (size_t i = 0; i < kGuard; ++i) intact = intact && guard[i] == kNewMemory;
  (kind == MemoryKind::kDevice ? device_bytes_ : pinned_bytes_) -= found->second.taken;
  allocations_.erase(found);
  absl::Status status;
  if (!intact)
    status = absl::InternalError(fmt::format("something was written behind the {} bytes at {}", bytes, data));
  std::free(data);
  return status;
}

absl::Status MemoryMap::Lock(void* data, uint64_t bytes) {
  const Allocation allocation = {MemoryKind::kPinned, bytes, bytes, /*is_locked=*/true};
  if (!allocations_.emplace(reinterpret_cast<uintptr_t>(data), allocation).second)
    return absl::InvalidArgumentError(fmt::format("{} is locked already", data));
  pinned_bytes_ += bytes;
  return absl::OkStatus();
}

absl::Status MemoryMap::Unlock(void* data) {
  const auto found = allocations_.find(reinterpret_cast<uintptr_t>(data));
  if (found == allocations_.end() || !found->second.is_locked)
    return absl::InvalidArgumentError(fmt::format("{} is not locked", data));
  pinned_bytes_ -= found->second.bytes;
  allocations_.erase(found);
  return absl::OkStatus();
}

absl::StatusOr<bool> MemoryMap::Holds(const void* data, uint64_t bytes) const {
  const uintptr_t address = reinterpret_cast<uintptr_t>(data);
  auto after = allocations_.upper_bound(address);
  if (after == allocations_.begin()) return false;
  const auto& [begin, allocation] = *--after;
  if (address - begin >= allocation.bytes) return false;
  if (bytes <= allocation.bytes - (address - begin)) return true;
  return absl::InvalidArgumentError(fmt::format(
      "{} bytes from {} reach behind the {} bytes allocated at {:#x}", bytes, data, allocation.bytes, begin));
}

}  // namespace ft::cuda::emulation
