// A counter that threads can wait for: briefly by spinning, then asleep in the kernel.
#pragma once

#include <atomic>
#include <cstdint>

namespace ft {

// Incrementing costs no system call unless somebody sleeps.
class WaitableCounter {
 public:
  uint32_t value() const { return value_.load(std::memory_order_acquire); }
  bool Reached(uint32_t target) const {
    return static_cast<int32_t>(value() - target) >= 0;
  }  // right across a wrap

  // Wakes all that sleep.
  void Increment();

  // No thread may be waiting.
  void Reset() { value_.store(0, std::memory_order_relaxed); }

  // Returns once the value is `target` or more. Spins for `spin_ns` at most before it sleeps.
  void WaitFor(uint32_t target, int64_t spin_ns);

 private:
  std::atomic<uint32_t> value_ = 0;
  std::atomic<uint32_t> sleepers_ = 0;
};

}  // namespace ft
