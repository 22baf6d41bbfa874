// Stands in front of malloc and its like for the whole process: operator new and every library end up here.
// Include it in one source of a program or library, behind a Count() of an unnamed namespace, which is called
// for each allocation. glibc exports its own functions under __libc_ names.
#pragma once

#include <cstdlib>

extern "C" {
void* __libc_malloc(size_t);
void* __libc_calloc(size_t, size_t);
void* __libc_realloc(void*, size_t);
void* __libc_memalign(size_t, size_t);

void* malloc(size_t bytes) {
  Count();
  return __libc_malloc(bytes);
}
void* calloc(size_t n, size_t bytes) {
  Count();
  return __libc_calloc(n, bytes);
}
void* realloc(void* old, size_t bytes) {
  Count();
  return __libc_realloc(old, bytes);
}
void* memalign(size_t alignment, size_t bytes) {
  Count();
  return __libc_memalign(alignment, bytes);
}
void* aligned_alloc(size_t alignment, size_t bytes) {
  Count();
  return __libc_memalign(alignment, bytes);
}
int posix_memalign(void** out, size_t alignment, size_t bytes) {
  Count();
  *out = __libc_memalign(alignment, bytes);
  return *out == nullptr;
}
}
