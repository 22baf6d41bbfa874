#include "test/doubles/file_faults/tracked_path.h"

#include <fcntl.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace ft::file_faults {
namespace {

constexpr int kMostLinks = 16;  // links to missing files that are followed one by one

// The descriptor's path as the kernel knows it.
bool PathOf(int fd, FullPath* full) {
  char link[64];
  snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
  const ssize_t length = readlink(link, full->text, sizeof(full->text) - 1);
  if (length <= 0 || full->text[0] != '/') return false;
  full->text[length] = '\0';
  return true;
}

// `folder` and `name` with a slash between them.
bool Join(const char* folder, const char* name, FullPath* joined) {
  const size_t slash = strcmp(folder, "/") == 0 ? 0 : 1;
  const size_t length = strlen(folder);
  if (length + slash + strlen(name) >= sizeof(joined->text)) return false;
  memmove(joined->text, folder, length + 1);
  if (slash != 0) strcat(joined->text, "/");
  strcat(joined->text, name);
  return true;
}

bool MakeAbsolute(int folder, const char* path, FullPath* absolute) {
  if (path[0] == '/') return Join("/", path + 1, absolute);
  FullPath base;
  const bool known =
      folder == AT_FDCWD ? getcwd(base.text, sizeof(base.text)) != nullptr : PathOf(folder, &base);
  return known && Join(base.text, path, absolute);
}

// The folder's real path and the last part as it stands, so that a link is not followed.
bool ResolveFolder(char* absolute, FullPath* full) {
  size_t length = strlen(absolute);
  while (length > 1 && absolute[length - 1] == '/') absolute[--length] = '\0';
  char* slash = strrchr(absolute, '/');
  const char* name = slash + 1;
  if (*name == '\0' || strcmp(name, ".") == 0 || strcmp(name, "..") == 0)
    return realpath(absolute, full->text) != nullptr;
  *slash = '\0';
  FullPath folder;
  const char* real = realpath(slash == absolute ? "/" : absolute, folder.text);
  return real != nullptr && Join(real, name, full);
}

}  // namespace

bool Resolve(int folder, const char* path, bool follow, FullPath* full) {
  FullPath absolute;
  if (path == nullptr || !MakeAbsolute(folder, path, &absolute)) return false;
  for (int links = 0; links < kMostLinks; ++links) {
    if (follow && realpath(absolute.text, full->text) != nullptr) return true;
    if (!ResolveFolder(absolute.text, full)) return false;
    // A link to what does not exist yet: the call makes what it points to.
    FullPath target;
    const ssize_t length = follow ? readlink(full->text, target.text, sizeof(target.text) - 1) : -1;
    if (length < 0) return true;
    target.text[length] = '\0';
    *strrchr(full->text, '/') = '\0';
    if (!Join(target.text[0] == '/' ? "/" : full->text, target.text + (target.text[0] == '/' ? 1 : 0),
              &absolute))
      return false;
  }
  return false;
}

bool Locate(int fd, FullPath* full, struct stat* info) {
  if (fstat(fd, info) != 0 || (!S_ISREG(info->st_mode) && !S_ISDIR(info->st_mode)) || !PathOf(fd, full))
    return false;
  constexpr char kDeleted[] = " (deleted)";
  const size_t length = strlen(full->text), suffix = sizeof(kDeleted) - 1;
  if (info->st_nlink == 0 && length > suffix && strcmp(full->text + length - suffix, kDeleted) == 0)
    full->text[length - suffix] = '\0';
  return true;
}

bool Under(const char* prefix, const FullPath& path) {
  const size_t length = strlen(prefix);
  return strncmp(path.text, prefix, length) == 0 && (path.text[length] == '\0' || path.text[length] == '/');
}

}  // namespace ft::file_faults
