// Calls on descriptors: what they write, cut, allocate and sync.
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "test/doubles/file_faults/interpose.h"
#include "test/doubles/file_faults/real_call.h"

namespace ft::file_faults {
namespace {

size_t Total(const iovec* pieces, int count) {
  size_t bytes = 0;
  for (int i = 0; i < count; ++i) bytes += pieces[i].iov_len;
  return bytes;
}

// The first `bytes` of `pieces`; returns how many pieces that are.
int Cut(const iovec* pieces, int count, size_t bytes, iovec* cut) {
  int used = 0;
  for (; used < count && bytes > 0; ++used) {
    cut[used] = pieces[used];
    if (cut[used].iov_len > bytes) cut[used].iov_len = bytes;
    bytes -= cut[used].iov_len;
  }
  return used;
}

// Past this library. `offset` and `flags` as of pwritev2.
long Perform(int fd, const iovec* pieces, int count, int64_t offset, int flags) {
  if (offset < 0 && flags == 0) return RealCall(SYS_writev, fd, pieces, count);
  return RealCall(SYS_pwritev2, fd, pieces, count, offset, 0, flags);
}

long PassThrough(Kind kind, int fd, const iovec* pieces, int count, int64_t offset, int flags) {
  if (kind == Kind::kWrite) return RealCall(SYS_write, fd, pieces->iov_base, pieces->iov_len);
  if (kind == Kind::kPwrite) return RealCall(SYS_pwrite64, fd, pieces->iov_base, pieces->iov_len, offset);
  return Perform(fd, pieces, count, offset, flags);
}

}  // namespace

long Write(Kind kind, int fd, const iovec* pieces, int count, int64_t offset, int flags) {
  FullPath path;
  Operation operation = {.kind = kind};
  const Where where = Identify(fd, &path, &operation);
  const int status = where == Where::kElsewhere ? 0 : fcntl(fd, F_GETFL);
  // What cannot succeed, and an offset before the file, are the system's to refuse.
  if (where == Where::kElsewhere || (status & O_ACCMODE) == O_RDONLY || count < 0 || pieces == nullptr ||
      (offset < 0 && kind == Kind::kPwrite))
    return PassThrough(kind, fd, pieces, count, offset, flags);
  if (where == Where::kMark) operation.kind = Kind::kMark;
  if (count > kMostPieces) count = kMostPieces;
  if (offset >= 0 && (status & O_APPEND) != 0)
    Unseen("a write at an offset of a file opened with O_APPEND", path.text);
  operation.data = pieces;
  operation.pieces = count;
  operation.length = Total(pieces, count);
  operation.flags = static_cast<uint32_t>(status);
  if ((flags & (RWF_DSYNC | RWF_SYNC)) != 0) operation.flags |= O_DSYNC;
  operation.offset = offset;
  return Run(
      &operation,
      [&](bool half) {
        if (!half) return Perform(fd, pieces, count, offset, flags);
        iovec cut[kMostPieces];
        return Perform(fd, cut, Cut(pieces, count, operation.length / 2, cut), offset, flags);
      },
      [&](long written) {
        if (offset < 0 && written >= 0) operation.offset = lseek(fd, 0, SEEK_CUR) - written;
      });
}

long Truncate(int fd, int64_t size) {
  FullPath path;
  Operation operation = {.kind = Kind::kTruncate, .offset = size};
  const auto perform = [&] { return RealCall(SYS_ftruncate, fd, size); };
  return Identify(fd, &path, &operation) == Where::kTracked ? Run(&operation, perform) : perform();
}

long TruncatePath(const char* path, int64_t size) {
  const auto perform = [&] { return RealCall(SYS_truncate, path, size); };
  FullPath full;
  struct stat info;
  if (!Enabled() || !Resolve(AT_FDCWD, path, /*follow=*/true, &full) || PlaceOf(full) != Where::kTracked ||
      stat(full.text, &info) != 0)
    return perform();
  Operation operation = {.kind = Kind::kTruncate, .path = full.text, .offset = size};
  SetIdentity(info, &operation);
  return Run(&operation, perform);
}

long Allocate(int fd, int mode, int64_t offset, int64_t length) {
  FullPath path;
  Operation operation = {.kind = Kind::kFallocate,
                         .offset = offset,
                         .length = static_cast<uint64_t>(length),
                         .flags = static_cast<uint32_t>(mode)};
  const auto perform = [&] { return RealCall(SYS_fallocate, fd, mode, offset, length); };
  return Identify(fd, &path, &operation) == Where::kTracked ? Run(&operation, perform) : perform();
}

long Sync(Kind kind, int fd) {
  FullPath path;
  Operation operation = {.kind = kind};
  const long number = kind == Kind::kFsync       ? SYS_fsync
                      : kind == Kind::kFdatasync ? SYS_fdatasync
                                                 : SYS_syncfs;
  const auto perform = [&] { return RealCall(number, fd); };
  return Identify(fd, &path, &operation) == Where::kTracked ? Run(&operation, perform) : perform();
}

void SyncAll() {
  const auto perform = [] { return RealCall(SYS_sync); };
  Operation operation = {.kind = Kind::kSync};
  if (Enabled()) {
    Run(&operation, perform);
  } else {
    perform();
  }
}

long SyncRange(int fd, int64_t offset, int64_t bytes, unsigned flags) {
  FullPath path;
  Operation operation = {
      .kind = Kind::kSyncFileRange, .offset = offset, .length = static_cast<uint64_t>(bytes), .flags = flags};
  const auto perform = [&] { return RealCall(SYS_sync_file_range, fd, offset, bytes, flags); };
  return Identify(fd, &path, &operation) == Where::kTracked ? Run(&operation, perform) : perform();
}

void NoteDescriptor(const char* function, int fd) {
  FullPath path;
  Operation operation = {.kind = Kind::kOpen};
  if (fd >= 0 && Identify(fd, &path, &operation) != Where::kElsewhere) Unseen(function, path.text);
}

}  // namespace ft::file_faults
