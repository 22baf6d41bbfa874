// Errors of system calls as Status.
#pragma once

#include <string_view>

#include "absl/status/status.h"

namespace ft {

// "cannot <action> '<path>': <strerror(errnum)>". ENOENT and ENOTDIR become NotFound, EACCES, EPERM and EROFS
// PermissionDenied, ENOSPC and EDQUOT ResourceExhausted (and the text says that the disk is full), everything
// else Internal; all of them make a program exit with 74 (I/O).
absl::Status PosixError(int errnum, std::string_view action, std::string_view path);

}  // namespace ft
