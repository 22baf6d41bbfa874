#include "runtime/checkpoint/state/write_range.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "runtime/base/direct_io.h"
#include "runtime/base/posix_error.h"
#include "runtime/base/status_macros.h"

namespace ft {

absl::Status WriteAt(int fd, const std::string& path, uint64_t offset, const void* data, uint64_t bytes) {
  const char* from = static_cast<const char*>(data);
  while (bytes > 0) {
    const ssize_t written = pwrite(fd, from, bytes, static_cast<off_t>(offset));
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return PosixError(written < 0 ? errno : ENOSPC, "write", path);
    from += written;
    offset += static_cast<uint64_t>(written);
    bytes -= static_cast<uint64_t>(written);
  }
  return absl::OkStatus();
}

RangeWriter::RangeWriter(int fd, const std::string& path) : fd_(fd), path_(path), direct_(TakesDirect(fd)) {}

absl::Status RangeWriter::Write(uint64_t offset, const std::byte* data, uint64_t bytes) {
  const uint64_t before = std::min(bytes, (kDirectBytes - offset % kDirectBytes) % kDirectBytes);
  const uint64_t middle = (bytes - before) / kDirectBytes * kDirectBytes;
  uint64_t done = 0;
  if (direct_ && middle > 0 && reinterpret_cast<uintptr_t>(data + before) % kDirectBytes == 0) {
    FT_RETURN_IF_ERROR(WriteAt(fd_, path_, offset, data, before));
    FT_ASSIGN_OR_RETURN(const uint64_t written, WriteDirect(offset + before, data + before, middle));
    done = before + written;
  }
  return WriteAt(fd_, path_, offset + done, data + done, bytes - done);
}

// Returns how much it has written: less where the system refuses to go on past the page cache.
absl::StatusOr<uint64_t> RangeWriter::WriteDirect(uint64_t offset, const std::byte* data, uint64_t bytes) {
  direct_ = SetDirect(fd_, true);
  if (!direct_) return 0;
  uint64_t done = 0;
  absl::Status status;
  while (done < bytes && done % kDirectBytes == 0) {
    const ssize_t written = pwrite(fd_, data + done, bytes - done, static_cast<off_t>(offset + done));
    if (written < 0 && errno == EINTR) continue;
    if (written < 0 && errno == EINVAL) {
      direct_ = false;
      break;
    }
    if (written <= 0) {
      status = PosixError(written < 0 ? errno : ENOSPC, "write", path_);
      break;
    }
    done += static_cast<uint64_t>(written);
  }
  if (!SetDirect(fd_, false)) return PosixError(errno, "write", path_);
  FT_RETURN_IF_ERROR(status);
  return done;
}

}  // namespace ft
