#include "runtime/base/output_check.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <system_error>

#include "runtime/base/atomic_file.h"
#include "runtime/base/posix_error.h"
#include "runtime/base/status_macros.h"

namespace ft {
namespace {

// What exists and is no regular file. A full device says so when nothing is written to it, too. Pipes are not
// opened: that would be seen at their other end.
absl::Status CheckSpecialFile(const std::string& path, const struct stat& info) {
  if (S_ISDIR(info.st_mode)) return PosixError(EISDIR, "write", path);
  if (!S_ISCHR(info.st_mode))
    return access(path.c_str(), W_OK) == 0 ? absl::OkStatus() : PosixError(errno, "write", path);
  const int fd = open(path.c_str(), O_WRONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
  if (fd < 0) return PosixError(errno, "write", path);
  const ssize_t written = write(fd, "", 0);
  const int error = errno;
  close(fd);
  return written < 0 ? PosixError(error, "write", path) : absl::OkStatus();
}

// A file that is not there yet, or what a link to nothing points to. Tried by a file of another name beside
// it: somebody may be waiting for this one to appear.
absl::Status CheckNewFile(const std::string& path, uint64_t bytes) {
  std::error_code ignored;
  const std::string folder = FolderOf(std::filesystem::weakly_canonical(path, ignored));
  std::string probe = folder + "/.ftexec-XXXXXX";
  const int fd = mkostemp(probe.data(), O_CLOEXEC);
  if (fd < 0) return PosixError(errno, "write", path);
  close(fd);
  unlink(probe.c_str());
  FT_RETURN_IF_ERROR(CheckFileLimit(path, bytes));
  return CheckRoom(path, folder, bytes);
}

}  // namespace

absl::Status CheckFileLimit(const std::string& path, uint64_t bytes) {
  struct rlimit limit;
  if (getrlimit(RLIMIT_FSIZE, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY || bytes <= limit.rlim_cur)
    return absl::OkStatus();
  return absl::ResourceExhaustedError(
      fmt::format("cannot write '{}': it takes {} bytes, but files are limited to {} (ulimit -f)", path,
                  bytes, limit.rlim_cur));
}

std::optional<uint64_t> FreeRoom(const std::string& at) {
  struct statvfs system;
  if (statvfs(at.c_str(), &system) != 0 || system.f_blocks == 0) return std::nullopt;
  return (geteuid() == 0 ? system.f_bfree : system.f_bavail) * system.f_frsize;
}

absl::Status CheckRoom(const std::string& path, const std::string& at, uint64_t bytes) {
  const std::optional<uint64_t> room = FreeRoom(at);
  if (!room.has_value() || bytes <= *room) return absl::OkStatus();
  return absl::ResourceExhaustedError(fmt::format(
      "cannot write '{}': it takes {} bytes, and {} are free there; free some room or choose another "
      "folder",
      path, bytes, *room));
}

absl::Status CheckAtomicOutput(const std::string& path, uint64_t bytes) {
  struct stat info;
  if (stat(path.c_str(), &info) == 0 && !S_ISREG(info.st_mode)) return CheckSpecialFile(path, info);
  FT_ASSIGN_OR_RETURN(const std::unique_ptr<AtomicFile> probe,
                      AtomicFile::Create(path));  // gone when it is destroyed
  FT_RETURN_IF_ERROR(CheckFileLimit(path, bytes));
  return CheckRoom(path, FolderOf(probe->path()), bytes);
}

absl::Status CheckInPlaceOutput(const std::string& path, uint64_t bytes) {
  struct stat info;
  if (stat(path.c_str(), &info) != 0)
    return errno == ENOENT ? CheckNewFile(path, bytes) : PosixError(errno, "write", path);
  if (!S_ISREG(info.st_mode)) return CheckSpecialFile(path, info);
  const int fd = open(path.c_str(), O_WRONLY | O_CLOEXEC);  // not emptied
  if (fd < 0) return PosixError(errno, "write", path);
  close(fd);
  FT_RETURN_IF_ERROR(CheckFileLimit(path, bytes));
  const uint64_t held = static_cast<uint64_t>(info.st_blocks) * 512;
  return CheckRoom(path, path, bytes > held ? bytes - held : 0);
}

}  // namespace ft
