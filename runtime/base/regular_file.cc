#include "runtime/base/regular_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "absl/strings/numbers.h"
#include "fmt/format.h"
#include "runtime/base/posix_error.h"
#include "runtime/base/status_macros.h"

namespace ft {
namespace {

// The descriptor that this process was started with and that `path` is another name of, or -1.
int OurDescriptor(std::string_view path) {
  if (path == "/dev/stdin") return STDIN_FILENO;
  for (const std::string_view folder : {"/dev/fd/", "/proc/self/fd/"}) {
    int fd = -1;
    if (path.starts_with(folder) && absl::SimpleAtoi(std::string(path.substr(folder.size())), &fd)) return fd;
  }
  return -1;
}

// Regular, or a pipe or socket that we hold already: whoever gave it to us writes it.
absl::StatusOr<OpenFile> OpenText(const std::string& path, std::string_view action) {
  const int ours = OurDescriptor(path);
  if (ours < 0) return OpenRegularFile(path, action);
  // Not opened a second time: that would wait for another writer.
  const int fd = fcntl(ours, F_DUPFD_CLOEXEC, 0);
  if (fd < 0) return PosixError(errno, action, path);
  OpenFile file(fd);
  struct stat info;
  if (fstat(fd, &info) != 0) return PosixError(errno, "examine", path);
  if (S_ISREG(info.st_mode) || S_ISFIFO(info.st_mode) || S_ISSOCK(info.st_mode)) return file;
  return absl::InvalidArgumentError(fmt::format("'{}' is neither a regular file nor a pipe", path));
}

std::string BoundText(uint64_t bytes) {
  return bytes % (1 << 20) == 0 ? fmt::format("{} MiB", bytes >> 20) : fmt::format("{} bytes", bytes);
}

}  // namespace

OpenFile::OpenFile(OpenFile&& other) noexcept : fd_(std::exchange(other.fd_, -1)), bytes_(other.bytes_) {}

OpenFile& OpenFile::operator=(OpenFile&& other) noexcept {
  std::swap(fd_, other.fd_);
  std::swap(bytes_, other.bytes_);
  return *this;
}

OpenFile::~OpenFile() {
  if (fd_ >= 0) close(fd_);
}

absl::StatusOr<OpenFile> OpenRegularFile(const std::string& path, std::string_view action) {
  // O_NONBLOCK: opening a FIFO must not hang before we can say that it is not a regular file.
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) return PosixError(errno, action, path);
  OpenFile file(fd);
  struct stat info;
  if (fstat(fd, &info) != 0) return PosixError(errno, "examine", path);
  if (S_ISDIR(info.st_mode))
    return absl::InvalidArgumentError(fmt::format("'{}' is a directory, not a regular file", path));
  if (!S_ISREG(info.st_mode))
    return absl::InvalidArgumentError(fmt::format("'{}' is not a regular file", path));
  file.set_bytes(static_cast<uint64_t>(info.st_size));
  return file;
}

absl::StatusOr<std::string> ReadText(const std::string& path, std::string_view what, uint64_t max_bytes) {
  const std::string action = fmt::format("read {}", what);
  FT_ASSIGN_OR_RETURN(const OpenFile file, OpenText(path, action));
  std::string text;
  // Grows with what has been read: the size of a file says nothing about files of the system.
  for (size_t end = 0;; end = text.size()) {
    text.resize(end + std::clamp<size_t>(end, 1 << 16, 1 << 24));
    const ssize_t bytes = read(file.fd(), text.data() + end, text.size() - end);
    if (bytes < 0 && errno == EINTR) {
      text.resize(end);
      continue;
    }
    if (bytes < 0) return PosixError(errno, action, path);
    text.resize(end + static_cast<size_t>(bytes));
    if (text.size() > max_bytes) {
      return absl::InvalidArgumentError(
          fmt::format("{}: larger than {}; this is no {}", path, BoundText(max_bytes), what));
    }
    if (bytes == 0) return text;
  }
}

}  // namespace ft
