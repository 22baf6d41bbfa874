// Calls on paths: what they open, make, rename and remove.
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstring>

#include "test/doubles/file_faults/interpose.h"
#include "test/doubles/file_faults/real_call.h"

namespace ft::file_faults {
namespace {

bool OpensForWriting(int flags) {
  return (flags & O_PATH) == 0 && ((flags & O_ACCMODE) != O_RDONLY || (flags & (O_CREAT | O_TRUNC)) != 0);
}

// Whether `path` lies under the prefix. A path that leads through what is missing lies nowhere: the call will
// fail.
bool Tracked(int folder, const char* path, bool follow, FullPath* full) {
  if (!Enabled() || path == nullptr || *path == '\0') return false;
  const int error = errno;
  const bool tracked = Resolve(folder, path, follow, full) && PlaceOf(*full) == Where::kTracked;
  errno = error;
  return tracked;
}

}  // namespace

long Open(int folder, const char* path, int flags, mode_t mode) {
  const auto perform = [&](bool) { return RealCall(SYS_openat, folder, path, flags, mode); };
  const bool unnamed = (flags & O_TMPFILE) == O_TMPFILE;
  const bool new_only = (flags & (O_CREAT | O_EXCL)) == (O_CREAT | O_EXCL);
  FullPath full;
  if (!OpensForWriting(flags) || !Tracked(folder, path, !new_only && (flags & O_NOFOLLOW) == 0, &full))
    return perform(false);
  struct stat info;
  const bool exists = stat(full.text, &info) == 0;
  // Pipes and devices are no part of a file system that could lose them; a folder cannot be opened so.
  if (exists && !S_ISREG(info.st_mode) && !unnamed) return perform(false);
  Operation operation = {.kind = Kind::kOpen,
                         .path = full.text,
                         .flags = static_cast<uint32_t>(flags),
                         .makes_name = unnamed || (!exists && (flags & O_CREAT) != 0)};
  int opened = -1;
  const long result = Run(&operation, perform, [&](long fd) {
    opened = static_cast<int>(fd);
    if (fd >= 0 && fstat(opened, &info) == 0) SetIdentity(info, &operation);
  });
  if (result < 0 && opened >= 0) close(opened);  // opened, and reported as an error
  return result;
}

long Rename(int old_folder, const char* old_path, int new_folder, const char* new_path, unsigned flags) {
  const auto perform = [&] {
    return RealCall(SYS_renameat2, old_folder, old_path, new_folder, new_path, flags);
  };
  FullPath from, to;
  const bool leaves = Tracked(old_folder, old_path, /*follow=*/false, &from);
  const bool enters = Tracked(new_folder, new_path, /*follow=*/false, &to);
  if (!leaves && !enters) return perform();
  if (!leaves || !enters) Unseen("a rename over the border of the prefix", leaves ? from.text : to.text);
  Operation operation = {.kind = Kind::kRename, .path = from.text, .path2 = to.text, .flags = flags};
  return Run(&operation, perform);
}

long Link(int old_folder, const char* old_path, int new_folder, const char* new_path, int flags) {
  const auto perform = [&] {
    return RealCall(SYS_linkat, old_folder, old_path, new_folder, new_path, flags);
  };
  FullPath from, to;
  if (!Tracked(new_folder, new_path, /*follow=*/false, &to)) return perform();
  // The old name may be a file's without one: /proc/self/fd/N. The identity tells which it is.
  if (!Tracked(old_folder, old_path, (flags & AT_SYMLINK_FOLLOW) != 0, &from)) from.text[0] = '\0';
  Operation operation = {
      .kind = Kind::kLink, .path = from.text, .path2 = to.text, .flags = static_cast<uint32_t>(flags)};
  struct stat info;
  const int how = (flags & AT_SYMLINK_FOLLOW ? 0 : AT_SYMLINK_NOFOLLOW) | (flags & AT_EMPTY_PATH);
  if (fstatat(old_folder, old_path, &info, how) == 0) SetIdentity(info, &operation);
  return Run(&operation, perform);
}

long Symlink(const char* target, int folder, const char* path) {
  const auto perform = [&] { return RealCall(SYS_symlinkat, target, folder, path); };
  FullPath full;
  if (!Tracked(folder, path, /*follow=*/false, &full)) return perform();
  Operation operation = {.kind = Kind::kSymlink, .path = full.text, .path2 = target};
  return Run(&operation, perform);
}

long Unlink(int folder, const char* path, int flags) {
  const auto perform = [&] { return RealCall(SYS_unlinkat, folder, path, flags); };
  FullPath full;
  if (!Tracked(folder, path, /*follow=*/false, &full)) return perform();
  Operation operation = {.kind = (flags & AT_REMOVEDIR) != 0 ? Kind::kRmdir : Kind::kUnlink,
                         .path = full.text};
  return Run(&operation, perform);
}

long MakeFolder(int folder, const char* path, mode_t mode) {
  const auto perform = [&] { return RealCall(SYS_mkdirat, folder, path, mode); };
  FullPath full;
  if (!Tracked(folder, path, /*follow=*/false, &full)) return perform();
  Operation operation = {.kind = Kind::kMkdir, .path = full.text};
  return Run(&operation, perform);
}

}  // namespace ft::file_faults
