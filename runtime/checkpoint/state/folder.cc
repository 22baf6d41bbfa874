#include "runtime/checkpoint/state/folder.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cmath>
#include <filesystem>
#include <memory>
#include <set>
#include <system_error>

#include "fmt/format.h"
#include "runtime/base/atomic_file.h"
#include "runtime/base/posix_error.h"
#include "runtime/base/regular_file.h"
#include "runtime/base/status_macros.h"
#include "runtime/checkpoint/state/manifest.h"

namespace ft {
namespace {

constexpr std::string_view kPrefix = "step-";
constexpr size_t kLeastDigits = 8;
// What no reader takes for a checkpoint, and RemoveLeftovers settles.
constexpr std::string_view kStagedPrefix = ".staged-", kReplacedPrefix = ".replaced-",
                           kRemovedPrefix = ".removed-";

bool IsFolder(const std::string& path) {
  struct stat info = {};
  return stat(path.c_str(), &info) == 0 && S_ISDIR(info.st_mode);
}

// Whether it was not there. What cannot be made may be there: automounters refuse before they look.
absl::StatusOr<bool> MakeFolder(const std::string& path) {
  if (mkdir(path.c_str(), 0777) == 0) return true;
  const int error = errno;
  if (error == EEXIST || IsFolder(path)) return false;
  return PosixError(error, "make the folder", path);
}

absl::Status RemoveAll(const std::string& path) {
  std::error_code error;
  std::filesystem::remove_all(path, error);  // of a symbolic link the link alone
  return error ? PosixError(error.value(), "remove", path) : absl::OkStatus();
}

std::string LastPartOf(const std::string& path) { return path.substr(path.rfind('/') + 1); }

// The names in a folder.
absl::StatusOr<std::vector<std::string>> NamesIn(const std::string& folder) {
  const std::unique_ptr<DIR, int (*)(DIR*)> stream(opendir(folder.c_str()), closedir);
  if (stream == nullptr) return PosixError(errno, "read the folder", folder);
  std::vector<std::string> names;
  errno = 0;
  while (const dirent* entry = readdir(stream.get())) names.emplace_back(entry->d_name);
  if (errno != 0) return PosixError(errno, "read the folder", folder);
  return names;
}

}  // namespace

// A folder that was made is a name in another one, which a power cut takes unless that is synced.
absl::Status MakeFolders(const std::string& path) {
  absl::StatusOr<bool> made = MakeFolder(path);
  const std::string parent = FolderOf(path);
  if (absl::IsNotFound(made.status()) && !IsFolder(parent) && parent != path) {
    FT_RETURN_IF_ERROR(MakeFolders(parent));
    made = MakeFolder(path);
  }
  FT_RETURN_IF_ERROR(made.status());
  if (!*made) return absl::OkStatus();
  const absl::Status synced = SyncPath(parent);
  return absl::IsPermissionDenied(synced) ? absl::OkStatus()
                                          : synced;  // folders may be writable, not readable
}

std::string CheckpointName(uint64_t step) { return fmt::format("{}{:08}", kPrefix, step); }

int64_t StepOfName(std::string_view name) {
  if (!name.starts_with(kPrefix) || name.size() < kPrefix.size() + kLeastDigits) return -1;
  int64_t step = 0;
  const auto [end, error] = std::from_chars(name.data() + kPrefix.size(), name.data() + name.size(), step);
  if (error != std::errc() || end != name.data() + name.size() || step < 0) return -1;
  return CheckpointName(static_cast<uint64_t>(step)) == name ? step : -1;
}

bool IsOfCheckpoints(std::string_view name) {
  for (const std::string_view prefix : {kStagedPrefix, kReplacedPrefix, kRemovedPrefix}) {
    if (name.starts_with(prefix)) return StepOfName(name.substr(prefix.size())) >= 0;
  }
  return StepOfName(name) >= 0;
}

absl::StatusOr<std::vector<CheckpointEntry>> ListCheckpoints(const std::string& folder) {
  std::vector<CheckpointEntry> entries;
  const absl::StatusOr<std::vector<std::string>> names = NamesIn(folder);
  if (absl::IsNotFound(names.status()) && access(folder.c_str(), F_OK) != 0) return entries;
  FT_RETURN_IF_ERROR(names.status());
  for (const std::string& name : *names) {
    const int64_t step = StepOfName(name);
    if (step < 0) continue;
    const std::string path = folder + "/" + name;
    const bool manifest = access((path + "/" + kManifestName).c_str(), F_OK) == 0;
    entries.push_back({static_cast<uint64_t>(step), path, manifest});
  }
  std::sort(entries.begin(), entries.end(),
            [](const CheckpointEntry& a, const CheckpointEntry& b) { return a.step > b.step; });
  return entries;
}

std::string StagedCheckpoint::path() const {
  return fmt::format("{}/{}{}", folder, kStagedPrefix, CheckpointName(step));
}

std::string StagedCheckpoint::destination() const {
  return fmt::format("{}/{}", folder, CheckpointName(step));
}

std::string StagedCheckpoint::replaced() const {
  return fmt::format("{}/{}{}", folder, kReplacedPrefix, CheckpointName(step));
}

// Its name need not be on the disk before Publish.
absl::Status MakeStaged(const StagedCheckpoint& staged) {
  const absl::Status made = MakeFolder(staged.path()).status();
  return absl::IsNotFound(made) ? MakeFolders(staged.path()) : made;
}

absl::Status RemoveStaged(const StagedCheckpoint& staged) { return RemoveAll(staged.path()); }

absl::Status SyncPath(const std::string& path) {
  const OpenFile file(open(path.c_str(), O_RDONLY | O_CLOEXEC));  // a folder may be behind a symbolic link
  if (file.fd() < 0) return PosixError(errno, "open", path);
  return fsync(file.fd()) == 0 ? absl::OkStatus() : PosixError(errno, "write", path);
}

namespace {

// The new one to its name. One that was there lies at staged.replaced() afterwards.
absl::Status PutInPlace(const StagedCheckpoint& staged) {
  const std::string from = staged.path(), to = staged.destination(), replaced = staged.replaced();
  if (renameat2(AT_FDCWD, from.c_str(), AT_FDCWD, to.c_str(), RENAME_NOREPLACE) == 0) return absl::OkStatus();
  if (errno == EEXIST) {
    FT_RETURN_IF_ERROR(RemoveAll(replaced));
    if (renameat2(AT_FDCWD, from.c_str(), AT_FDCWD, to.c_str(), RENAME_EXCHANGE) == 0) {
      // Under the name of a staged one it would be taken for what failed, should the folder not be synced.
      return rename(from.c_str(), replaced.c_str()) == 0 ? absl::OkStatus()
                                                         : PosixError(errno, "replace", to);
    }
  }
  if (errno != EINVAL && errno != ENOSYS && errno != EOPNOTSUPP) return PosixError(errno, "put in place", to);
  // File systems that cannot do this in one step: RemoveLeftovers puts the older one back, should there be
  // nothing in its place.
  FT_RETURN_IF_ERROR(RemoveAll(replaced));
  if (rename(to.c_str(), replaced.c_str()) != 0 && errno != ENOENT) return PosixError(errno, "replace", to);
  if (rename(from.c_str(), to.c_str()) == 0) return absl::OkStatus();
  const absl::Status status = PosixError(errno, "put in place", to);
  rename(replaced.c_str(), to.c_str());
  return status;
}

}  // namespace

absl::Status Publish(const StagedCheckpoint& staged, bool keep_replaced) {
  FT_RETURN_IF_ERROR(SyncPath(staged.path()));
  FT_RETURN_IF_ERROR(PutInPlace(staged));
  // Nothing goes before it is on the disk what came in its place.
  FT_RETURN_IF_ERROR(SyncPath(staged.folder));
  // It is published; RemoveLeftovers tries again.
  if (!keep_replaced) RemoveAll(staged.replaced()).IgnoreError();
  return absl::OkStatus();
}

absl::Status RemoveCheckpoint(const std::string& path) {
  // Under another name first, and on the disk: half of a checkpoint must not look like a damaged one.
  const std::string parent = FolderOf(path);
  const std::string removed = fmt::format("{}/{}{}", parent, kRemovedPrefix, LastPartOf(path));
  FT_RETURN_IF_ERROR(RemoveAll(removed));
  if (rename(path.c_str(), removed.c_str()) != 0)
    return errno == ENOENT ? absl::OkStatus() : PosixError(errno, "remove", path);
  FT_RETURN_IF_ERROR(SyncPath(parent));
  return RemoveAll(removed);
}

absl::Status RemoveLeftovers(const std::string& folder) {
  const absl::StatusOr<std::vector<std::string>> names = NamesIn(folder);
  if (!names.ok()) return absl::IsNotFound(names.status()) ? absl::OkStatus() : names.status();
  std::vector<std::string> leftovers;
  for (const std::string& name : *names) {
    for (const std::string_view prefix : {kStagedPrefix, kReplacedPrefix, kRemovedPrefix}) {
      if (!name.starts_with(prefix) || StepOfName(std::string_view(name).substr(prefix.size())) < 0) continue;
      const std::string path = folder + "/" + name, destination = folder + "/" + name.substr(prefix.size());
      const bool lost = prefix == kReplacedPrefix && access(destination.c_str(), F_OK) != 0;
      if (!lost) {
        leftovers.push_back(path);
      } else if (rename(path.c_str(), destination.c_str()) != 0) {
        return PosixError(errno, "put back", path);
      }
    }
  }
  if (leftovers.empty()) return absl::OkStatus();
  // A run that was killed may not have come to it: what they were replaced by has to be on the disk.
  FT_RETURN_IF_ERROR(SyncPath(folder));
  for (const std::string& path : leftovers) FT_RETURN_IF_ERROR(RemoveAll(path));
  return absl::OkStatus();
}

std::vector<uint64_t> Expendable(const Retention& retention, std::vector<KeptCandidate> there) {
  if (retention.newest == 0 && retention.every == 0 && retention.best == 0) return {};
  std::sort(there.begin(), there.end(),
            [](const KeptCandidate& a, const KeptCandidate& b) { return a.step > b.step; });
  std::set<uint64_t> kept;
  for (size_t i = 0; i < there.size(); ++i) {
    const uint64_t step = there[i].step;
    if (i < std::max<uint64_t>(1, retention.newest)) kept.insert(step);
    if (retention.every > 0 && step % retention.every == 0) kept.insert(step);
  }
  std::vector<uint64_t> expendable;
  for (const KeptCandidate& candidate : there) expendable.push_back(candidate.step);
  std::erase_if(there, [](const KeptCandidate& c) { return !c.evaluated || !std::isfinite(c.eval_loss); });
  std::stable_sort(there.begin(), there.end(),
                   [](const KeptCandidate& a, const KeptCandidate& b) { return a.eval_loss < b.eval_loss; });
  for (size_t i = 0; i < std::min<size_t>(there.size(), retention.best); ++i) kept.insert(there[i].step);
  std::erase_if(expendable, [&](uint64_t step) { return kept.contains(step); });
  return expendable;
}

}  // namespace ft
