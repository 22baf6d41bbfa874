#include "runtime/collective/shm/futex.h"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <climits>

namespace ft {

// Not the private kind of futex: the word lies in memory that several processes map.
void FutexWait(const std::atomic<uint32_t>* word, uint32_t seen, absl::Duration patience) {
  const timespec relative = absl::ToTimespec(patience);
  syscall(SYS_futex, word, FUTEX_WAIT, seen, &relative, nullptr, 0);
}

void FutexWakeAll(const std::atomic<uint32_t>* word) {
  syscall(SYS_futex, word, FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
}

}  // namespace ft
