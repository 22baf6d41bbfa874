// Memory that the emulated driver gave away: which addresses are the device's, which are page-locked.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace ft::cuda::emulation {

enum class MemoryKind { kDevice, kPinned };

// Not thread-safe.
class MemoryMap {
 public:
  ~MemoryMap();

  // Filled with 0xCD. Of the heap and, under AddressSanitizer, exactly as long as asked for. With
  // `page_bytes` it takes whole pages of them, which others can map.
  void* Allocate(MemoryKind kind, uint64_t bytes, uint64_t page_bytes = 0);

  // InvalidArgument for what was not allocated so, in pages or not; Internal when something behind its end
  // was written.
  absl::Status Release(MemoryKind kind, void* data, bool in_pages = false);

  // Memory of others, as if it had been allocated page-locked; it may not be released. InvalidArgument for
  // what is locked already, and for what was not.
  absl::Status Lock(void* data, uint64_t bytes);
  absl::Status Unlock(void* data);

  // Whether a known allocation holds `data`. InvalidArgument when it ends before `bytes` do.
  absl::StatusOr<bool> Holds(const void* data, uint64_t bytes) const;

  uint64_t bytes(MemoryKind kind) const {
    return kind == MemoryKind::kDevice ? device_bytes_ : pinned_bytes_;
  }

 private:
  struct Allocation {
    MemoryKind kind;
    uint64_t bytes;
    uint64_t taken = bytes;  // of the device or the host
    bool is_locked = false;  // and not ours
    bool in_pages = false;
  };

  std::map<uintptr_t, Allocation> allocations_;  // by first byte
  uint64_t device_bytes_ = 0, pinned_bytes_ = 0;
};

}  // namespace ft::cuda::emulation
