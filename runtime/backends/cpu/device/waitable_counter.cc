#include "runtime/backends/cpu/device/waitable_counter.h"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <climits>

#include "runtime/base/monotonic_clock.h"

namespace ft {
namespace {

// Spinning looks at the clock once in so many rounds.
constexpr int kRoundsPerClock = 16;

void Pause() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

uint32_t* Word(std::atomic<uint32_t>& value) {
  static_assert(sizeof(std::atomic<uint32_t>) == sizeof(uint32_t));
  return reinterpret_cast<uint32_t*>(&value);
}

}  // namespace

void WaitableCounter::Increment() {
  // Both this pair and the waiter's (sleepers up, then look at the value) are sequentially consistent, so one
  // of the two sees the other: no wake-up is lost.
  value_.fetch_add(1, std::memory_order_seq_cst);
  if (sleepers_.load(std::memory_order_seq_cst) != 0)
    syscall(SYS_futex, Word(value_), FUTEX_WAKE_PRIVATE, INT_MAX, nullptr, nullptr, 0);
}

void WaitableCounter::WaitFor(uint32_t target, int64_t spin_ns) {
  if (Reached(target)) return;
  if (spin_ns > 0) {
    const int64_t deadline = MonotonicNs() + spin_ns;
    do {
      for (int round = 0; round < kRoundsPerClock; ++round) {
        if (Reached(target)) return;
        Pause();
      }
    } while (MonotonicNs() < deadline);
  }
  sleepers_.fetch_add(1, std::memory_order_seq_cst);
  for (uint32_t seen = value_.load(std::memory_order_seq_cst); static_cast<int32_t>(seen - target) < 0;
       seen = value_.load(std::memory_order_seq_cst)) {
    syscall(SYS_futex, Word(value_), FUTEX_WAIT_PRIVATE, seen, nullptr, nullptr, 0);
  }
  sleepers_.fetch_sub(1, std::memory_order_relaxed);
}

}  // namespace ft
