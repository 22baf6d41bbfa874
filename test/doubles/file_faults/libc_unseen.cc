// Ways to change a file that are not watched. They work as ever, and their use under the prefix is noted, so
// that nobody takes a count for complete that is not: streams of stdio (they write inside libc), mapped
// files, copies inside the kernel.
#include <dlfcn.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>

#include "test/doubles/file_faults/interpose.h"
#include "test/doubles/file_faults/real_call.h"

namespace ff = ft::file_faults;

namespace {

template <typename Function>
Function* Next(const char* name, Function*) {
  return reinterpret_cast<Function*>(dlsym(RTLD_NEXT, name));
}

bool Writes(const char* mode) { return mode != nullptr && strpbrk(mode, "wa+") != nullptr; }

FILE* Noted(const char* function, const char* mode, FILE* file) {
  if (file != nullptr && Writes(mode)) ff::NoteDescriptor(function, fileno(file));
  return file;
}

}  // namespace

FT_INTERPOSE FILE* fopen(const char* path, const char* mode) {
  return Noted("fopen", mode, Next("fopen", &fopen)(path, mode));
}
FT_INTERPOSE FILE* fopen64(const char* path, const char* mode) {
  return Noted("fopen64", mode, Next("fopen64", &fopen64)(path, mode));
}
FT_INTERPOSE FILE* freopen(const char* path, const char* mode, FILE* file) {
  return Noted("freopen", mode, Next("freopen", &freopen)(path, mode, file));
}
FT_INTERPOSE FILE* fdopen(int fd, const char* mode) noexcept {
  return Noted("fdopen", mode, Next("fdopen", &fdopen)(fd, mode));
}

FT_INTERPOSE void* mmap64(void* address, size_t bytes, int protection, int flags, int fd,
                          off64_t offset) noexcept {
  const long data = ff::RealCall(SYS_mmap, address, bytes, protection, flags, fd, offset);
  const bool shared = (flags & MAP_TYPE) == MAP_SHARED || (flags & MAP_TYPE) == MAP_SHARED_VALIDATE;
  if (shared && (protection & PROT_WRITE) != 0 && (flags & MAP_ANONYMOUS) == 0)
    ff::NoteDescriptor("mmap", fd);
  return reinterpret_cast<void*>(data);  // NOLINT
}
FT_INTERPOSE void* mmap(void* address, size_t bytes, int protection, int flags, int fd,
                        off_t offset) noexcept {
  return mmap64(address, bytes, protection, flags, fd, offset);
}

FT_INTERPOSE ssize_t sendfile64(int to, int from, off64_t* offset, size_t bytes) noexcept {
  ff::NoteDescriptor("sendfile", to);
  return ff::RealCall(SYS_sendfile, to, from, offset, bytes);
}
FT_INTERPOSE ssize_t sendfile(int to, int from, off_t* offset, size_t bytes) noexcept {
  return sendfile64(to, from, offset, bytes);
}
FT_INTERPOSE ssize_t copy_file_range(int from, off64_t* from_offset, int to, off64_t* to_offset, size_t bytes,
                                     unsigned flags) {
  ff::NoteDescriptor("copy_file_range", to);
  return ff::RealCall(SYS_copy_file_range, from, from_offset, to, to_offset, bytes, flags);
}
FT_INTERPOSE ssize_t splice(int from, off64_t* from_offset, int to, off64_t* to_offset, size_t bytes,
                            unsigned flags) {
  ff::NoteDescriptor("splice", to);
  return ff::RealCall(SYS_splice, from, from_offset, to, to_offset, bytes, flags);
}
