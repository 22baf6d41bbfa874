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

// Memory for such transfers, its contents undefined.
class DirectBuffer {
 public:
  explicit DirectBuffer(size_t bytes)
      : bytes_(bytes), data_(static_cast<std::byte*>(operator new(bytes, kAlignment))) {}

  std::byte* data() const { return data_.get(); }
  size_t size() const { return bytes_; }

 private:
  static constexpr std::align_val_t kAlignment{kDirectBytes};
  struct Delete {
    void operator()(std::byte* data) const { operator delete(data, kAlignment); }
  };

  size_t bytes_;
  std::unique_ptr<std::byte, Delete> data_;
};

}  // namespace ft
