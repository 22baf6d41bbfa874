// syscall(): calls that are made by number.
#include <fcntl.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include <cstdarg>

#include "test/doubles/file_faults/interpose.h"
#include "test/doubles/file_faults/real_call.h"

namespace ft::file_faults {
namespace {

template <typename T>
T As(long argument) {
  return (T)argument;  // NOLINT: a register holds an integer of any width, or a pointer
}

// Calls on descriptors; false: it is none of them.
bool OnDescriptor(long number, const long* a, long* result) {
  const int fd = As<int>(a[0]);
  const iovec piece = {As<void*>(a[1]), As<size_t>(a[2])};
  const iovec* pieces = As<const iovec*>(a[1]);
  const int count = As<int>(a[2]);
  switch (number) {
    case SYS_write:
      *result = Write(Kind::kWrite, fd, &piece, 1, -1, 0);
      return true;
    case SYS_pwrite64:
      *result = Write(Kind::kPwrite, fd, &piece, 1, a[3], 0);
      return true;
    case SYS_writev:
      *result = Write(Kind::kWritev, fd, pieces, count, -1, 0);
      return true;
    case SYS_pwritev:
      *result = a[3] < 0 ? RealCall(number, fd, pieces, count, a[3], a[4])
                         : Write(Kind::kPwritev, fd, pieces, count, a[3], 0);
      return true;
    case SYS_pwritev2:
      *result = Write(Kind::kPwritev, fd, pieces, count, a[3], As<int>(a[5]));
      return true;
    case SYS_ftruncate:
      *result = Truncate(fd, a[1]);
      return true;
    case SYS_fallocate:
      *result = Allocate(fd, As<int>(a[1]), a[2], a[3]);
      return true;
    case SYS_fsync:
      *result = Sync(Kind::kFsync, fd);
      return true;
    case SYS_fdatasync:
      *result = Sync(Kind::kFdatasync, fd);
      return true;
    case SYS_syncfs:
      *result = Sync(Kind::kSync, fd);
      return true;
    case SYS_sync_file_range:
      *result = SyncRange(fd, a[1], a[2], As<unsigned>(a[3]));
      return true;
    default:
      return false;
  }
}

// Calls on paths relative to a descriptor.
bool OnPathAt(long number, const long* a, long* result) {
  const int folder = As<int>(a[0]);
  const char* path = As<const char*>(a[1]);
  switch (number) {
    case SYS_openat:
      *result = Open(folder, path, As<int>(a[2]), As<mode_t>(a[3]));
      return true;
    case SYS_truncate:
      *result = TruncatePath(As<const char*>(a[0]), a[1]);
      return true;
    case SYS_renameat2:
      *result = Rename(folder, path, As<int>(a[2]), As<const char*>(a[3]), As<unsigned>(a[4]));
      return true;
#ifdef SYS_renameat
    case SYS_renameat:
      *result = Rename(folder, path, As<int>(a[2]), As<const char*>(a[3]), 0);
      return true;
#endif
    case SYS_linkat:
      *result = Link(folder, path, As<int>(a[2]), As<const char*>(a[3]), As<int>(a[4]));
      return true;
    case SYS_symlinkat:
      *result = Symlink(As<const char*>(a[0]), As<int>(a[1]), As<const char*>(a[2]));
      return true;
    case SYS_unlinkat:
      *result = Unlink(folder, path, As<int>(a[2]));
      return true;
    case SYS_mkdirat:
      *result = MakeFolder(folder, path, As<mode_t>(a[2]));
      return true;
    default:
      return false;
  }
}

// The older calls, which newer machines do not have.
bool OnPath(long number, const long* a, long* result) {
#ifdef SYS_open
  const char* path = As<const char*>(a[0]);
  const char* second = As<const char*>(a[1]);
  switch (number) {
    case SYS_open:
      *result = Open(AT_FDCWD, path, As<int>(a[1]), As<mode_t>(a[2]));
      return true;
    case SYS_creat:
      *result = Open(AT_FDCWD, path, O_WRONLY | O_CREAT | O_TRUNC, As<mode_t>(a[1]));
      return true;
    case SYS_rename:
      *result = Rename(AT_FDCWD, path, AT_FDCWD, second, 0);
      return true;
    case SYS_link:
      *result = Link(AT_FDCWD, path, AT_FDCWD, second, 0);
      return true;
    case SYS_symlink:
      *result = Symlink(path, AT_FDCWD, second);
      return true;
    case SYS_unlink:
      *result = Unlink(AT_FDCWD, path, 0);
      return true;
    case SYS_rmdir:
      *result = Unlink(AT_FDCWD, path, AT_REMOVEDIR);
      return true;
    case SYS_mkdir:
      *result = MakeFolder(AT_FDCWD, path, As<mode_t>(a[1]));
      return true;
    default:
      break;
  }
#endif
  return false;
}

// Calls that change files in ways that are not watched.
void NoteOthers(long number, const long* a) {
  if (number == SYS_copy_file_range || number == SYS_splice) NoteDescriptor("syscall", As<int>(a[2]));
  if (number == SYS_sendfile) NoteDescriptor("syscall", As<int>(a[0]));
  if (number == SYS_io_uring_setup && Enabled()) Unseen("syscall", "io_uring");
}

}  // namespace
}  // namespace ft::file_faults

FT_INTERPOSE long syscall(long number, ...) noexcept {
  using namespace ft::file_faults;  // NOLINT: one function, in front of libc's
  long a[6];
  va_list arguments;
  va_start(arguments, number);
  for (long& argument : a) argument = va_arg(arguments, long);
  va_end(arguments);
  long result = -1;
  if (OnDescriptor(number, a, &result) || OnPathAt(number, a, &result) || OnPath(number, a, &result))
    return result;
  NoteOthers(number, a);
  return RealCall(number, a[0], a[1], a[2], a[3], a[4], a[5]);
}
