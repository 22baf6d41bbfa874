#include "runtime/base/atomic_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <utility>

#include "absl/memory/memory.h"
#include "absl/strings/str_cat.h"
#include "runtime/base/posix_error.h"
#include "runtime/base/status_macros.h"

namespace ft {
namespace {

constexpr size_t kBufferBytes = size_t{1} << 16;

// `path`, or what it points to when it is a link to something that exists.
std::string WithoutLinks(const std::string& path) {
  struct stat info;
  if (lstat(path.c_str(), &info) != 0 || !S_ISLNK(info.st_mode)) return path;
  const std::unique_ptr<char, decltype(&std::free)> target(realpath(path.c_str(), nullptr), &std::free);
  return target ? target.get() : path;
}

// 0 or errno. Not every file system can sync a folder (EINVAL), and who may write into one need not be
// allowed to read it (EACCES): nobody can do more then, and what was put there is in place all the same.
int SyncFolder(const std::string& path) {
  const int folder = open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (folder < 0) return errno == EACCES ? 0 : errno;
  const int error = fsync(folder) == 0 || errno == EINVAL ? 0 : errno;
  close(folder);
  return error;
}

}  // namespace

std::string FolderOf(const std::string& path) {
  const size_t slash = path.rfind('/');
  if (slash == std::string::npos) return ".";
  return slash == 0 ? "/" : path.substr(0, slash);
}

absl::StatusOr<std::unique_ptr<AtomicFile>> AtomicFile::Create(std::string path) {
  static std::atomic<uint64_t> counter{0};
  struct stat info;
  if (stat(path.c_str(), &info) == 0 && !S_ISREG(info.st_mode)) {
    const int fd = open(path.c_str(), O_WRONLY | O_CLOEXEC);  // EISDIR for a folder
    if (fd < 0) return PosixError(errno, "write", path);
    return absl::WrapUnique(new AtomicFile(std::move(path), "", fd));
  }
  path = WithoutLinks(path);
  while (true) {
    std::string temporary = absl::StrCat(path, ".tmp.", getpid(), ".", counter.fetch_add(1));
    const int fd = open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (fd >= 0) return absl::WrapUnique(new AtomicFile(std::move(path), std::move(temporary), fd));
    // Left by a dead process that had our pid; it is not ours to remove, so take the next name.
    if (errno != EEXIST) return PosixError(errno, "create", path);
  }
}

AtomicFile::AtomicFile(std::string path, std::string temporary, int fd)
    : path_(std::move(path)), temporary_(std::move(temporary)), fd_(fd) {
  buffer_.reserve(kBufferBytes);
}

AtomicFile::~AtomicFile() {
  if (fd_ >= 0) close(fd_);
  if (!committed_ && !temporary_.empty()) unlink(temporary_.c_str());
}

absl::Status AtomicFile::Fail(int errnum, std::string_view action) {
  status_ = PosixError(errnum, action, path_);
  return status_;
}

absl::Status AtomicFile::WriteAll(const char* data, size_t bytes) {
  while (bytes > 0) {
    const ssize_t written = write(fd_, data, bytes);
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return Fail(errno, "write");
    data += written;
    bytes -= static_cast<size_t>(written);
  }
  return absl::OkStatus();
}

absl::Status AtomicFile::Flush() {
  FT_RETURN_IF_ERROR(WriteAll(buffer_.data(), buffer_.size()));
  buffer_.clear();
  return absl::OkStatus();
}

absl::Status AtomicFile::Append(const void* data, size_t bytes) {
  FT_RETURN_IF_ERROR(status_);
  if (buffer_.size() + bytes > kBufferBytes) FT_RETURN_IF_ERROR(Flush());
  if (bytes >= kBufferBytes) return WriteAll(static_cast<const char*>(data), bytes);
  buffer_.append(static_cast<const char*>(data), bytes);
  return absl::OkStatus();
}

absl::Status AtomicFile::Commit() {
  FT_RETURN_IF_ERROR(status_);
  FT_RETURN_IF_ERROR(Flush());
  if (!temporary_.empty() && fsync(fd_) != 0) return Fail(errno, "write");
  if (close(std::exchange(fd_, -1)) != 0) return Fail(errno, "write");
  committed_ = temporary_.empty();
  if (committed_) return absl::OkStatus();
  if (rename(temporary_.c_str(), path_.c_str()) != 0) return Fail(errno, "replace");
  committed_ = true;
  // The new name survives a power cut only once the folder is on disk.
  const int error = SyncFolder(FolderOf(path_));
  return error == 0 ? absl::OkStatus() : Fail(error, "sync the folder of");
}

absl::Status WriteFileAtomically(const std::string& path, std::string_view contents) {
  FT_ASSIGN_OR_RETURN(std::unique_ptr<AtomicFile> file, AtomicFile::Create(path));
  FT_RETURN_IF_ERROR(file->Append(contents));
  return file->Commit();
}

}  // namespace ft
