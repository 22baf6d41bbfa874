// Which paths and descriptors lie under the prefix. Nothing is remembered: a descriptor is asked where it
// lies each time, so dup, fork, exec, inheritance and folders that were renamed meanwhile need no
// bookkeeping.
#pragma once

#include <limits.h>
#include <sys/stat.h>

namespace ft::file_faults {

// An absolute path without links. Too long: empty, and not tracked.
struct FullPath {
  char text[PATH_MAX] = "";
};

// `path` as an *at call with `folder` (a descriptor or AT_FDCWD) takes it. The last part is followed when it
// is a link and `follow` says so; it need not exist. False: there is no telling (a folder on the way is
// missing).
bool Resolve(int folder, const char* path, bool follow, FullPath* full);

// Where a regular file or folder that is open as `fd` lies, and its identity. False: it is something else.
bool Locate(int fd, FullPath* full, struct stat* info);

// Whether `path` is `prefix` or lies below it.
bool Under(const char* prefix, const FullPath& path);

}  // namespace ft::file_faults
