// Counts what a process allocates, from its beginning to its end, and says it on its standard error: to be
// preloaded. Whatever allocates ends up here; glibc exports its own functions under __libc_ names.
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>

namespace {

std::atomic<long> allocations{0};

void Count() { allocations.fetch_add(1, std::memory_order_relaxed); }

__attribute__((destructor)) void Report() {
  char line[64];
  const int length = std::snprintf(line, sizeof(line), "allocations: %ld\n", allocations.load());
  if (write(STDERR_FILENO, line, static_cast<size_t>(length)) < 0) _exit(1);
}

}  // namespace

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
