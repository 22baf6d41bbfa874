#include "runtime/base/posix_error.h"

#include <fmt/format.h>

#include <cerrno>
#include <string>
#include <system_error>

namespace ft {
namespace {

absl::StatusCode CodeOf(int errnum) {
  switch (errnum) {
    case ENOENT:
    case ENOTDIR:
      return absl::StatusCode::kNotFound;
    case EACCES:
    case EPERM:
    case EROFS:
      return absl::StatusCode::kPermissionDenied;
    case ENOSPC:
    case EDQUOT:
      return absl::StatusCode::kResourceExhausted;
    default:
      return absl::StatusCode::kInternal;
  }
}

}  // namespace

absl::Status PosixError(int errnum, std::string_view action, std::string_view path) {
  // ENOSPC's own text speaks of a device, which in this project is something else.
  const bool disk_full = errnum == ENOSPC || errnum == EDQUOT;
  const std::string reason = disk_full
                                 ? "the disk (or the quota) is full; free some room or choose another folder"
                             : errnum == EFBIG ? "it would be larger than files may be (ulimit -f)"
                                               : std::generic_category().message(errnum);
  return absl::Status(CodeOf(errnum), fmt::format("cannot {} '{}': {}", action, path, reason));
}

}  // namespace ft
