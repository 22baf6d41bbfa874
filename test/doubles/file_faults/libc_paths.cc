// libc's names of calls on paths.
#include <fcntl.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdarg>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "test/doubles/file_faults/interpose.h"

namespace ff = ft::file_faults;

namespace {

// The mode is there only where the call may create.
#define FT_MODE(flags, mode)                                            \
  mode_t mode = 0;                                                      \
  if (((flags) & O_CREAT) != 0 || ((flags) & O_TMPFILE) == O_TMPFILE) { \
    va_list arguments;                                                  \
    va_start(arguments, flags);                                         \
    mode = va_arg(arguments, mode_t);                                   \
    va_end(arguments);                                                  \
  }

int OpenFile(int folder, const char* path, int flags, mode_t mode) {
  return static_cast<int>(ff::Open(folder, path, flags, mode));
}

// The six X before `suffix` letters at the end; null and EINVAL when they are not there.
char* Pattern(char* name, int suffix) {
  const size_t length = strlen(name);
  if (suffix >= 0 && length >= 6 + static_cast<size_t>(suffix)) {
    char* pattern = name + length - suffix - 6;
    if (strncmp(pattern, "XXXXXX", 6) == 0) return pattern;
  }
  errno = EINVAL;
  return nullptr;
}

void FillIn(char* pattern) {
  static constexpr char kLetters[] = "abcdefghijklmnopqrstuvwxyz0123456789";
  uint8_t random[6] = {};
  if (getrandom(random, sizeof(random), 0) < 0) return;
  for (int i = 0; i < 6; ++i) pattern[i] = kLetters[random[i] % (sizeof(kLetters) - 1)];
}

constexpr int kMostNames = 100;  // that are tried

// libc makes these by calls of its own, which nothing stands in front of.
int MakeFile(char* name, int suffix, int flags) {
  char* pattern = Pattern(name, suffix);
  if (pattern == nullptr) return -1;
  for (int i = 0; i < kMostNames; ++i) {
    FillIn(pattern);
    const int fd = OpenFile(AT_FDCWD, name, (flags & ~O_ACCMODE) | O_RDWR | O_CREAT | O_EXCL, 0600);
    if (fd >= 0 || errno != EEXIST) return fd;
  }
  return -1;
}

}  // namespace

FT_INTERPOSE int open(const char* path, int flags, ...) {
  FT_MODE(flags, mode)
  return OpenFile(AT_FDCWD, path, flags, mode);
}
FT_INTERPOSE int open64(const char* path, int flags, ...) {
  FT_MODE(flags, mode)
  return OpenFile(AT_FDCWD, path, flags, mode);
}
FT_INTERPOSE int openat(int folder, const char* path, int flags, ...) {
  FT_MODE(flags, mode)
  return OpenFile(folder, path, flags, mode);
}
FT_INTERPOSE int openat64(int folder, const char* path, int flags, ...) {
  FT_MODE(flags, mode)
  return OpenFile(folder, path, flags, mode);
}
// What _FORTIFY_SOURCE makes of them.
FT_INTERPOSE int __open_2(const char* path, int flags) { return OpenFile(AT_FDCWD, path, flags, 0); }
FT_INTERPOSE int __open64_2(const char* path, int flags) { return OpenFile(AT_FDCWD, path, flags, 0); }
FT_INTERPOSE int __openat_2(int folder, const char* path, int flags) {
  return OpenFile(folder, path, flags, 0);
}
FT_INTERPOSE int __openat64_2(int folder, const char* path, int flags) {
  return OpenFile(folder, path, flags, 0);
}

FT_INTERPOSE int creat(const char* path, mode_t mode) {
  return OpenFile(AT_FDCWD, path, O_WRONLY | O_CREAT | O_TRUNC, mode);
}
FT_INTERPOSE int creat64(const char* path, mode_t mode) { return creat(path, mode); }

FT_INTERPOSE int mkostemps(char* name, int suffix, int flags) { return MakeFile(name, suffix, flags); }
FT_INTERPOSE int mkostemps64(char* name, int suffix, int flags) { return MakeFile(name, suffix, flags); }
FT_INTERPOSE int mkstemps(char* name, int suffix) { return MakeFile(name, suffix, 0); }
FT_INTERPOSE int mkstemps64(char* name, int suffix) { return MakeFile(name, suffix, 0); }
FT_INTERPOSE int mkostemp(char* name, int flags) { return MakeFile(name, 0, flags); }
FT_INTERPOSE int mkostemp64(char* name, int flags) { return MakeFile(name, 0, flags); }
FT_INTERPOSE int mkstemp(char* name) { return MakeFile(name, 0, 0); }
FT_INTERPOSE int mkstemp64(char* name) { return MakeFile(name, 0, 0); }
FT_INTERPOSE char* mkdtemp(char* name) noexcept {
  char* pattern = Pattern(name, 0);
  for (int i = 0; pattern != nullptr && i < kMostNames; ++i) {
    FillIn(pattern);
    if (ff::MakeFolder(AT_FDCWD, name, 0700) == 0) return name;
    if (errno != EEXIST) break;
  }
  return nullptr;
}

FT_INTERPOSE int rename(const char* from, const char* to) noexcept {
  return static_cast<int>(ff::Rename(AT_FDCWD, from, AT_FDCWD, to, 0));
}
FT_INTERPOSE int renameat(int old_folder, const char* from, int new_folder, const char* to) noexcept {
  return static_cast<int>(ff::Rename(old_folder, from, new_folder, to, 0));
}
FT_INTERPOSE int renameat2(int old_folder, const char* from, int new_folder, const char* to,
                           unsigned flags) noexcept {
  return static_cast<int>(ff::Rename(old_folder, from, new_folder, to, flags));
}
FT_INTERPOSE int link(const char* from, const char* to) noexcept {
  return static_cast<int>(ff::Link(AT_FDCWD, from, AT_FDCWD, to, 0));
}
FT_INTERPOSE int linkat(int old_folder, const char* from, int new_folder, const char* to,
                        int flags) noexcept {
  return static_cast<int>(ff::Link(old_folder, from, new_folder, to, flags));
}
FT_INTERPOSE int symlink(const char* target, const char* path) noexcept {
  return static_cast<int>(ff::Symlink(target, AT_FDCWD, path));
}
FT_INTERPOSE int symlinkat(const char* target, int folder, const char* path) noexcept {
  return static_cast<int>(ff::Symlink(target, folder, path));
}
FT_INTERPOSE int unlink(const char* path) noexcept { return static_cast<int>(ff::Unlink(AT_FDCWD, path, 0)); }
FT_INTERPOSE int unlinkat(int folder, const char* path, int flags) noexcept {
  return static_cast<int>(ff::Unlink(folder, path, flags));
}
FT_INTERPOSE int rmdir(const char* path) noexcept {
  return static_cast<int>(ff::Unlink(AT_FDCWD, path, AT_REMOVEDIR));
}
FT_INTERPOSE int remove(const char* path) noexcept {
  struct stat info;
  const bool folder = lstat(path, &info) == 0 && S_ISDIR(info.st_mode);
  return folder ? rmdir(path) : unlink(path);
}
FT_INTERPOSE int mkdir(const char* path, mode_t mode) noexcept {
  return static_cast<int>(ff::MakeFolder(AT_FDCWD, path, mode));
}
FT_INTERPOSE int mkdirat(int folder, const char* path, mode_t mode) noexcept {
  return static_cast<int>(ff::MakeFolder(folder, path, mode));
}
