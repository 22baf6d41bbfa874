#include "tools/ftckpt/find_checkpoint.h"

#include <sys/stat.h>

#include <cerrno>
#include <memory>
#include <vector>

#include "fmt/format.h"
#include "runtime/base/posix_error.h"
#include "runtime/base/printable.h"
#include "runtime/base/standard_streams.h"
#include "runtime/base/status_macros.h"
#include "runtime/checkpoint/state/branches.h"
#include "runtime/checkpoint/state/checkpoint_reader.h"
#include "runtime/checkpoint/state/manifest.h"

namespace ft::ckpt {

std::string WithoutSlashes(std::string path) {
  while (path.size() > 1 && path.ends_with('/')) path.pop_back();
  return path;
}

bool IsCheckpoint(const std::string& path) {
  struct stat info = {};
  return lstat(fmt::format("{}/{}", path, kManifestName).c_str(), &info) == 0;
}

namespace {

// What --resume=auto looks at, but for what depends on the plan.
absl::Status Examine(CheckpointReader& reader) {
  FT_RETURN_IF_ERROR(reader.CheckStepOfName());
  return reader.VerifyFiles();
}

absl::StatusOr<std::string> NewestOf(const std::string& folder) {
  FT_ASSIGN_OR_RETURN(const std::vector<BranchedCheckpoint> there, ListBranches(folder));
  const std::vector<CheckpointEntry> entries = NewestBranch(there);
  for (const CheckpointEntry& entry : entries) {
    const absl::StatusOr<std::unique_ptr<CheckpointReader>> reader = CheckpointReader::Open(entry.path);
    const absl::Status status = reader.ok() ? Examine(**reader) : reader.status();
    if (status.ok()) return entry.path;
    if (absl::IsPermissionDenied(status) || (absl::IsInvalidArgument(status) && reader.ok())) return status;
    PrintError(fmt::format("ftckpt: passed over the checkpoint '{}': {}", entry.path,
                           OneLine(std::string(status.message()))));
  }
  if (entries.empty())
    return absl::InvalidArgumentError(
        fmt::format("'{}' is no checkpoint and holds none: there is no {}", folder, kManifestName));
  return absl::InvalidArgumentError(
      fmt::format("no checkpoint in '{}' is whole; name one of them to see what is left of it", folder));
}

}  // namespace

absl::StatusOr<std::string> FindCheckpoint(const std::string& given) {
  const std::string path = WithoutSlashes(given);
  struct stat info = {};
  if (stat(path.c_str(), &info) != 0) return PosixError(errno, "read", path);
  if (IsCheckpoint(path)) return path;
  if (!S_ISDIR(info.st_mode))
    return absl::InvalidArgumentError(fmt::format("'{}' is no folder, and so no checkpoint", path));
  return NewestOf(path);
}

}  // namespace ft::ckpt
