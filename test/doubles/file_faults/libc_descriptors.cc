// libc's names of calls on descriptors.
#include <fcntl.h>
#include <sys/uio.h>
#include <unistd.h>

#include <cerrno>

#include "test/doubles/file_faults/interpose.h"
#include "test/doubles/file_faults/real_call.h"

namespace ff = ft::file_faults;

FT_INTERPOSE ssize_t write(int fd, const void* data, size_t bytes) {
  const iovec piece = {const_cast<void*>(data), bytes};
  return ff::Write(ff::Kind::kWrite, fd, &piece, 1, -1, 0);
}

FT_INTERPOSE ssize_t pwrite64(int fd, const void* data, size_t bytes, off64_t offset) {
  const iovec piece = {const_cast<void*>(data), bytes};
  return ff::Write(ff::Kind::kPwrite, fd, &piece, 1, offset, 0);
}
FT_INTERPOSE ssize_t pwrite(int fd, const void* data, size_t bytes, off_t offset) {
  return pwrite64(fd, data, bytes, offset);
}

FT_INTERPOSE ssize_t writev(int fd, const iovec* pieces, int count) {
  return ff::Write(ff::Kind::kWritev, fd, pieces, count, -1, 0);
}

// An offset of -1 means the position for pwritev2 alone.
FT_INTERPOSE ssize_t pwritev64(int fd, const iovec* pieces, int count, off64_t offset) {
  if (offset >= 0) return ff::Write(ff::Kind::kPwritev, fd, pieces, count, offset, 0);
  errno = EINVAL;
  return -1;
}
FT_INTERPOSE ssize_t pwritev(int fd, const iovec* pieces, int count, off_t offset) {
  return pwritev64(fd, pieces, count, offset);
}
FT_INTERPOSE ssize_t pwritev64v2(int fd, const iovec* pieces, int count, off64_t offset, int flags) {
  return ff::Write(ff::Kind::kPwritev, fd, pieces, count, offset, flags);
}
FT_INTERPOSE ssize_t pwritev2(int fd, const iovec* pieces, int count, off_t offset, int flags) {
  return ff::Write(ff::Kind::kPwritev, fd, pieces, count, offset, flags);
}

FT_INTERPOSE int ftruncate64(int fd, off64_t size) noexcept {
  return static_cast<int>(ff::Truncate(fd, size));
}
FT_INTERPOSE int ftruncate(int fd, off_t size) noexcept { return ftruncate64(fd, size); }
FT_INTERPOSE int truncate64(const char* path, off64_t size) noexcept {
  return static_cast<int>(ff::TruncatePath(path, size));
}
FT_INTERPOSE int truncate(const char* path, off_t size) noexcept { return truncate64(path, size); }

FT_INTERPOSE int fallocate64(int fd, int mode, off64_t offset, off64_t length) {
  return static_cast<int>(ff::Allocate(fd, mode, offset, length));
}
FT_INTERPOSE int fallocate(int fd, int mode, off_t offset, off_t length) {
  return fallocate64(fd, mode, offset, length);
}
// Returns the error. Where the file system cannot allocate, libc writes zeros; a caller sees EOPNOTSUPP here.
FT_INTERPOSE int posix_fallocate64(int fd, off64_t offset, off64_t length) {
  const int before = errno;
  const int error = ff::Allocate(fd, 0, offset, length) == 0 ? 0 : errno;
  errno = before;
  return error;
}
FT_INTERPOSE int posix_fallocate(int fd, off_t offset, off_t length) {
  return posix_fallocate64(fd, offset, length);
}

FT_INTERPOSE int fsync(int fd) { return static_cast<int>(ff::Sync(ff::Kind::kFsync, fd)); }
FT_INTERPOSE int fdatasync(int fd) { return static_cast<int>(ff::Sync(ff::Kind::kFdatasync, fd)); }
FT_INTERPOSE int syncfs(int fd) noexcept { return static_cast<int>(ff::Sync(ff::Kind::kSync, fd)); }
FT_INTERPOSE int sync_file_range(int fd, off64_t offset, off64_t bytes, unsigned flags) {
  return static_cast<int>(ff::SyncRange(fd, offset, bytes, flags));
}
FT_INTERPOSE void sync() noexcept { ff::SyncAll(); }
