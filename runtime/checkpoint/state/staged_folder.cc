#include "runtime/checkpoint/state/staged_folder.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <system_error>
#include <utility>

#include "fmt/format.h"
#include "runtime/base/atomic_file.h"
#include "runtime/base/posix_error.h"
#include "runtime/base/status_macros.h"
#include "runtime/checkpoint/state/folder.h"

namespace ft {
namespace {

bool IsThere(const std::string& path) {
  struct stat info = {};
  return lstat(path.c_str(), &info) == 0;
}

absl::Status Occupied(const std::string& path) {
  return absl::AlreadyExistsError(
      fmt::format("'{}' is there already, and is not replaced; remove it, or choose another name", path));
}

// The folder that is at `path` now, locked for this process. Errors: AlreadyExists when another has it.
absl::StatusOr<OpenFile> LockFolder(const std::string& path) {
  for (;;) {
    if (mkdir(path.c_str(), 0777) != 0 && errno != EEXIST) return PosixError(errno, "make the folder", path);
    OpenFile folder(open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW));
    if (folder.fd() < 0 && errno == ENOENT) continue;  // just published by another
    if (folder.fd() < 0) return PosixError(errno, "open the folder", path);
    // Not all file systems lock folders; there the name alone has to do.
    if (flock(folder.fd(), LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK)
      return absl::AlreadyExistsError(fmt::format("another process is working in '{}'", path));
    struct stat locked = {}, named = {};
    if (fstat(folder.fd(), &locked) == 0 && lstat(path.c_str(), &named) == 0 &&
        locked.st_ino == named.st_ino && locked.st_dev == named.st_dev)
      return folder;
  }
}

absl::Status Empty(const std::string& folder) {
  std::error_code error;
  for (std::filesystem::directory_iterator at(folder, error), end; !error && at != end; at.increment(error)) {
    std::filesystem::remove_all(at->path(), error);
    if (error) break;
  }
  return error ? PosixError(error.value(), "empty the folder", folder) : absl::OkStatus();
}

}  // namespace

absl::StatusOr<StagedFolder> StagedFolder::Make(const std::string& destination) {
  std::string to = destination;
  while (to.size() > 1 && to.ends_with('/')) to.pop_back();
  const std::string name = to.substr(to.rfind('/') + 1);
  if (name.empty() || name == "." || name == "..")
    return absl::InvalidArgumentError(fmt::format("'{}' is no name for a new folder", destination));
  if (IsThere(to)) return Occupied(to);
  const std::string folder = FolderOf(to);
  if (folder != "/") FT_RETURN_IF_ERROR(MakeFolders(folder));
  std::string path = fmt::format("{}{}.converting-{}", folder, folder == "/" ? "" : "/", name);
  FT_ASSIGN_OR_RETURN(OpenFile lock, LockFolder(path));
  FT_RETURN_IF_ERROR(Empty(path));
  return StagedFolder(std::move(path), std::move(to), std::move(lock));
}

StagedFolder::~StagedFolder() {
  if (path_.empty() || lock_.fd() < 0) return;
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);  // what is left goes with the next attempt
}

absl::Status StagedFolder::Publish() {
  FT_RETURN_IF_ERROR(SyncPath(path_));
  const char *from = path_.c_str(), *to = destination_.c_str();
  if (renameat2(AT_FDCWD, from, AT_FDCWD, to, RENAME_NOREPLACE) != 0) {
    if (errno == EEXIST) return Occupied(destination_);
    if (errno != EINVAL && errno != ENOSYS) return PosixError(errno, "make the folder", destination_);
    // A file system that cannot promise it: at worst an empty folder that came meanwhile is replaced.
    if (IsThere(destination_)) return Occupied(destination_);
    if (rename(from, to) != 0) return PosixError(errno, "make the folder", destination_);
  }
  path_.clear();
  return SyncPath(FolderOf(destination_));
}

}  // namespace ft
