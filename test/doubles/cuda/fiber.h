// Stacks that take turns on one thread of the host: the threads of an emulated block. Under AddressSanitizer
// every switch is announced.
#pragma once

#include <cstddef>
#include <memory>

#if defined(__SANITIZE_ADDRESS__)
#define FT_FIBER_ASAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define FT_FIBER_ASAN 1
#endif
#endif
#if !defined(FT_FIBER_ASAN)
#define FT_FIBER_ASAN 0
#endif

namespace ft::cuda::emulation {

// Either the stack that its thread came with (default constructed), or one of its own.
class Fiber {
 public:
  Fiber();
  // Begins with `entry`, which never returns, at the first switch to it. `index` spreads stacks over the
  // cache.
  Fiber(void (*entry)(), int index);
  ~Fiber();
  Fiber(const Fiber&) = delete;
  Fiber& operator=(const Fiber&) = delete;

  // Begins anew with `entry`; what was on the stack is forgotten, destructors are not called.
  void Restart();

  // Whether an address is on the stack; never on the thread's own.
  bool Holds(const void* address) const {
    const auto* byte = static_cast<const std::byte*>(address);
    return byte >= stack_ && byte < stack_ + bytes_;
  }

  // From `from`, which is running, to `to`; returns when somebody switches back.
  static void Switch(Fiber& from, Fiber& to);

 private:
  struct Machine;  // registers that are kept
  static void Begin();

  std::unique_ptr<Machine> machine_;
  void (*entry_)() = nullptr;
  std::byte* stack_ = nullptr;  // null for the thread's own
  size_t bytes_ = 0;            // usable, above the guard page
  size_t shift_ = 0;
#if FT_FIBER_ASAN  // its account of this stack
  void* fake_stack_ = nullptr;
  const void* bottom_ = nullptr;
  size_t size_ = 0;
#endif
};

}  // namespace ft::cuda::emulation
