#include "tools/ftckpt/find_checkpoint.h"

#include <sys/stat.h>

#include <cerrno>
#include <vector>

#include "fmt/format.h"
#include "runtime/base/posix_error.h"
#include "runtime/base/status_macros.h"
#include "runtime/checkpoint/state/branches.h"
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

absl::StatusOr<std::string> FindCheckpoint(const std::string& given) {
  const std::string path = WithoutSlashes(given);
  struct stat info = {};
  if (stat(path.c_str(), &info) != 0) return PosixError(errno, "read", path);
  if (IsCheckpoint(path)) return path;
  if (!S_ISDIR(info.st_mode))
    return absl::InvalidArgumentError(fmt::format("'{}' is no folder, and so no checkpoint", path));
  FT_ASSIGN_OR_RETURN(const std::vector<BranchedCheckpoint> there, ListBranches(path));
  for (const CheckpointEntry& entry : NewestBranch(there)) {
    if (entry.has_manifest) return entry.path;
  }
  return absl::InvalidArgumentError(
      fmt::format("'{}' is no checkpoint and holds none: there is no {}", path, kManifestName));
}

}  // namespace ft::ckpt
