// Counts what a process allocates, from its beginning to its end, and says it on its standard error: to be
// preloaded.
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

#include "test/doubles/allocations/interposed_malloc.h"
