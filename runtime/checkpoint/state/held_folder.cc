#include "runtime/checkpoint/state/held_folder.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <string_view>
#include <utility>

#include "fmt/format.h"
#include "runtime/base/posix_error.h"
#include "runtime/base/printable.h"
#include "runtime/base/status_macros.h"

namespace ft {
namespace {

constexpr char kName[] = ".held-by-run";
constexpr size_t kMostOfHolder = 256;
constexpr int kMostTries = 100;

std::string ThisProcess() {
  char host[kMostOfHolder / 2] = {};
  gethostname(host, sizeof(host) - 1);
  return fmt::format("process {} on {}", getpid(), host);
}

// Who wrote it; one that has just come may not have done so yet.
std::string HolderIn(const OpenFile& file) {
  char text[kMostOfHolder];
  const ssize_t bytes = pread(file.fd(), text, sizeof(text), 0);
  return bytes <= 0 ? "" : fmt::format(" ({})", OneLine(std::string(text, static_cast<size_t>(bytes))));
}

// Network file systems lock only what is open for writing. A file that a killed run of another user left is
// perhaps not to be written, but can be locked elsewhere.
absl::StatusOr<OpenFile> OpenToLock(const std::string& path, bool& is_own) {
  OpenFile file(open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0666));
  const int error = errno;
  is_own = file.fd() >= 0;
  if (!is_own && error == EACCES) file = OpenFile(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW));
  if (file.fd() < 0) return PosixError(error, "write", path);
  return file;
}

bool IsStillThere(const OpenFile& file, const std::string& path) {
  struct stat locked = {}, named = {};
  return fstat(file.fd(), &locked) == 0 && lstat(path.c_str(), &named) == 0 &&
         locked.st_ino == named.st_ino && locked.st_dev == named.st_dev;
}

absl::Status Sign(const OpenFile& file, const std::string& path) {
  const std::string holder = ThisProcess();
  if (ftruncate(file.fd(), 0) != 0) return PosixError(errno, "write", path);
  const ssize_t written = pwrite(file.fd(), holder.data(), holder.size(), 0);
  if (written == static_cast<ssize_t>(holder.size())) return absl::OkStatus();
  return PosixError(written < 0 ? errno : ENOSPC, "write", path);
}

}  // namespace

absl::StatusOr<HeldFolder> HeldFolder::Take(const std::string& folder) {
  const std::string path = fmt::format("{}/{}", folder, kName);
  for (int tries = 0; tries < kMostTries; ++tries) {
    bool is_own = false;
    FT_ASSIGN_OR_RETURN(OpenFile file, OpenToLock(path, is_own));
    if (flock(file.fd(), LOCK_EX | LOCK_NB) != 0) {
      if (errno == EWOULDBLOCK)
        return absl::ResourceExhaustedError(
            fmt::format("another run{} writes its checkpoints into '{}'; wait for its end, or choose another "
                        "folder",
                        HolderIn(file), folder));
      if (!is_own) return PosixError(EACCES, "write", path);
      break;
    }
    if (!IsStillThere(file, path)) continue;  // that run has just ended
    // Who held it is gone: with a file of one's own the next one is told the right name.
    if (!is_own && unlink(path.c_str()) == 0) continue;
    HeldFolder held(path, std::move(file));
    if (is_own) FT_RETURN_IF_ERROR(Sign(held.file_, path));
    return held;
  }
  // The file system cannot lock (ENOLCK, EOPNOTSUPP ...), or does not know its files again: a run there takes
  // the care of whoever started it.
  return HeldFolder(path, OpenFile(-1));
}

// While it is still locked: who opened it meanwhile sees that it is gone.
HeldFolder::~HeldFolder() {
  if (file_.fd() >= 0) unlink(path_.c_str());
}

}  // namespace ft
