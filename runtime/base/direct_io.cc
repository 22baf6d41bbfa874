#include "runtime/base/direct_io.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

namespace ft {
namespace {

constexpr size_t kHugePage = size_t{2} << 20;

std::align_val_t AlignmentOf(size_t bytes) {
  return std::align_val_t{bytes >= kHugePage ? kHugePage : static_cast<size_t>(kDirectBytes)};
}

}  // namespace

bool TakesDirect(int fd) {
#ifdef STATX_DIOALIGN
  struct statx info = {};
  if (statx(fd, "", AT_EMPTY_PATH, STATX_DIOALIGN, &info) != 0) return false;
  if ((info.stx_mask & STATX_DIOALIGN) == 0) return false;
  const auto fits = [](uint32_t alignment) { return alignment != 0 && kDirectBytes % alignment == 0; };
  return fits(info.stx_dio_offset_align) && fits(info.stx_dio_mem_align);
#else
  static_cast<void>(fd);
  return false;
#endif
}

bool SetDirect(int fd, bool direct) {
  const int flags = fcntl(fd, F_GETFL);
  return flags >= 0 && fcntl(fd, F_SETFL, direct ? flags | O_DIRECT : flags & ~O_DIRECT) == 0;
}

DirectBuffer::DirectBuffer(size_t bytes)
    : bytes_(bytes),
      data_(static_cast<std::byte*>(operator new(bytes, AlignmentOf(bytes))), Delete{AlignmentOf(bytes)}) {
  // A hint: where there are none, small pages do.
  if (bytes >= kHugePage) madvise(data_.get(), bytes, MADV_HUGEPAGE);
}

}  // namespace ft
