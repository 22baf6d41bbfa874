// What the functions that programs call share: one implementation for each system call that is watched,
// whichever of libc's names it came by.
#pragma once

#include <sys/types.h>
#include <sys/uio.h>

#include <cstdint>

#include "test/doubles/file_faults/operation.h"

// A function that stands in front of libc's.
#define FT_INTERPOSE extern "C" __attribute__((visibility("default")))

namespace ft::file_faults {

// As the system calls of their names: -1 and errno on failure.
long Open(int folder, const char* path, int flags, mode_t mode);
// kind: one of the writes. offset -1: at the descriptor's position. flags: of pwritev2.
long Write(Kind kind, int fd, const iovec* pieces, int count, int64_t offset, int flags);
long Truncate(int fd, int64_t size);
long TruncatePath(const char* path, int64_t size);
long Allocate(int fd, int mode, int64_t offset, int64_t length);
long Sync(Kind kind, int fd);  // fsync, fdatasync, syncfs
void SyncAll();                // sync
long SyncRange(int fd, int64_t offset, int64_t bytes, unsigned flags);
long Rename(int old_folder, const char* old_path, int new_folder, const char* new_path, unsigned flags);
long Link(int old_folder, const char* old_path, int new_folder, const char* new_path, int flags);
long Symlink(const char* target, int folder, const char* path);
long Unlink(int folder, const char* path, int flags);
long MakeFolder(int folder, const char* path, mode_t mode);

// Notes the use of a function that is not watched, when `fd` lies under the prefix.
void NoteDescriptor(const char* function, int fd);

}  // namespace ft::file_faults
