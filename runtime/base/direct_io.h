// Transfers between memory and a disk past the page cache.
//
// The state of a run is written once and read at most once. Through the page cache every byte is copied once
// more, into pages that the system has to find first and that others could use.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>

namespace ft {

// What offsets, sizes and addresses of such transfers are multiples of. More than any disk's block, and at
// least a page of any system: a page that is cached never has bytes of such a range.
inline constexpr uint64_t kDirectBytes = uint64_t{64} << 10;

// Whether the file system says that it moves multiples of kDirectBytes of this file past the page cache.
// Those in memory do not.
bool TakesDirect(int fd);

// Whether reads and writes of the descriptor go past the page cache from now on. False: the system refused,
// and nothing changed.
bool SetDirect(int fd, bool direct);

// Memory for such transfers, its contents undefined. In huge pages where it is large: a disk moves what lies
// together in memory at once.
class DirectBuffer {
 public:
  explicit DirectBuffer(size_t bytes);

  std::byte* data() const { return data_.get(); }
  size_t size() const { return bytes_; }

 private:
  struct Delete {
    void operator()(std::byte* data) const { operator delete(data, alignment); }
    std::align_val_t alignment;
  };

  size_t bytes_;
  std::unique_ptr<std::byte, Delete> data_;
};

}  // namespace ft
