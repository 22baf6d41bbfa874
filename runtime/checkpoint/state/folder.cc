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
#include "runtime/base/posix_error.h"
#include "runtime/base/regular_file.h"
#include "runtime/base/status_macros.h"
#include "runtime/checkpoint/state/manifest.h"

namespace ft {
namespace {

constexpr std::string_view kPrefix = "step-";
constexpr size_t kLeastDigits = 8;
// What no reader takes for a checkpoint, and RemoveLeftovers removes.
constexpr std::string_view kStagedPrefix = ".staged-", kRemovedPrefix = ".removed-";

absl::Status MakeFolder(const std::string& path) {
  if (mkdir(path.c_str(), 0777) == 0 || errno == EEXIST) return absl::OkStatus();
  return PosixError(errno, "make the folder", path);
}

absl::Status RemoveAll(const std::string& path) {
  std::error_code error;
  std::filesystem::remove_all(path, error);  // of a symbolic link the link alone
  return error ? PosixError(error.value(), "remove", path) : absl::OkStatus();
}

std::string ParentOf(const std::string& path) {
  const size_t slash = path.rfind('/');
  return slash == std::string::npos ? "." : path.substr(0, std::max<size_t>(slash, 1));
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

absl::Status MakeFolders(const std::string& path) {
  for (size_t slash = path.find('/', 1); slash != std::string::npos; slash = path.find('/', slash + 1))
    FT_RETURN_IF_ERROR(MakeFolder(path.substr(0, slash)));
  return MakeFolder(path);
}

std::string CheckpointName(uint64_t step) { return fmt::format("{}{:08}", kPrefix, step); }

int64_t StepOfName(std::string_view name) {
  if (!name.starts_with(kPrefix) || name.size() < kPrefix.size() + kLeastDigits) return -1;
  int64_t step = 0;
  const auto [end, error] = std::from_chars(name.data() + kPrefix.size(), name.data() + name.size(), step);
  if (error != std::errc() || end != name.data() + name.size() || step < 0) return -1;
  return CheckpointName(static_cast<uint64_t>(step)) == name ? step : -1;
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

absl::Status MakeStaged(const StagedCheckpoint& staged) { return MakeFolders(staged.path()); }

absl::Status SyncPath(const std::string& path) {
  const OpenFile file(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW));
  if (file.fd() < 0) return PosixError(errno, "open", path);
  return fsync(file.fd()) == 0 ? absl::OkStatus() : PosixError(errno, "write", path);
}

absl::Status Publish(const StagedCheckpoint& staged) {
  const std::string from = staged.path(), to = staged.destination();
  FT_RETURN_IF_ERROR(SyncPath(from));
  bool replaced = false;
  if (renameat2(AT_FDCWD, from.c_str(), AT_FDCWD, to.c_str(), RENAME_NOREPLACE) != 0) {
    // A checkpoint of the step is there: they change places. File systems that cannot do this get the older
    // one out of the way first.
    const std::string removed =
        fmt::format("{}/{}{}", staged.folder, kRemovedPrefix, CheckpointName(staged.step));
    replaced = renameat2(AT_FDCWD, from.c_str(), AT_FDCWD, to.c_str(), RENAME_EXCHANGE) == 0;
    if (!replaced) {
      FT_RETURN_IF_ERROR(RemoveAll(removed));
      if (rename(to.c_str(), removed.c_str()) != 0 && errno != ENOENT)
        return PosixError(errno, "replace", to);
      if (rename(from.c_str(), to.c_str()) != 0) return PosixError(errno, "put in place", to);
      FT_RETURN_IF_ERROR(SyncPath(staged.folder));
      return RemoveAll(removed);
    }
  }
  FT_RETURN_IF_ERROR(SyncPath(staged.folder));
  return replaced ? RemoveAll(from) : absl::OkStatus();
}

absl::Status RemoveCheckpoint(const std::string& path) {
  // Under another name first: half of a checkpoint must not look like a damaged one.
  const std::string removed = fmt::format("{}/{}{}", ParentOf(path), kRemovedPrefix, LastPartOf(path));
  FT_RETURN_IF_ERROR(RemoveAll(removed));
  if (rename(path.c_str(), removed.c_str()) != 0)
    return errno == ENOENT ? absl::OkStatus() : PosixError(errno, "remove", path);
  return RemoveAll(removed);
}

absl::Status RemoveLeftovers(const std::string& folder) {
  const absl::StatusOr<std::vector<std::string>> names = NamesIn(folder);
  if (!names.ok()) return absl::IsNotFound(names.status()) ? absl::OkStatus() : names.status();
  for (const std::string& name : *names) {
    const std::string_view view = name;
    for (const std::string_view prefix : {kStagedPrefix, kRemovedPrefix}) {
      if (view.starts_with(prefix) && StepOfName(view.substr(prefix.size())) >= 0)
        FT_RETURN_IF_ERROR(RemoveAll(folder + "/" + name));
    }
  }
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
