// What the compiler calls before every access of code that is compiled with -fsanitize=thread: here in place
// of that sanitizer's library, whose threads are not those of a GPU. Not every program links this.
#include "test/doubles/cuda/race_watch.h"

namespace {

using ft::cuda::emulation::Access;
using ft::cuda::emulation::RaceWatch;

template <typename T, typename F>
T Atomic(volatile T* address, const void* code, F change) {
  RaceWatch::Own().Note(const_cast<const T*>(address), sizeof(T), Access::kAtomic, code);
  return change(address);
}

}  // namespace

#define FT_CODE __builtin_return_address(0)
#define FT_ACCESS(bytes)                                                                                    \
  void __tsan_read##bytes(void* address) { RaceWatch::Own().Note(address, bytes, Access::kRead, FT_CODE); } \
  void __tsan_write##bytes(void* address) { RaceWatch::Own().Note(address, bytes, Access::kWrite, FT_CODE); }
#define FT_ATOMIC(bits, T)                                                                                 \
  T __tsan_atomic##bits##_fetch_add(volatile T* address, T value, int) {                                   \
    return Atomic(address, FT_CODE, [&](volatile T* at) { return __atomic_fetch_add(at, value, 5); });     \
  }                                                                                                        \
  T __tsan_atomic##bits##_fetch_or(volatile T* address, T value, int) {                                    \
    return Atomic(address, FT_CODE, [&](volatile T* at) { return __atomic_fetch_or(at, value, 5); });      \
  }                                                                                                        \
  T __tsan_atomic##bits##_load(const volatile T* address, int) {                                           \
    return Atomic(const_cast<volatile T*>(address), FT_CODE,                                               \
                  [&](volatile T* at) { return __atomic_load_n(at, 5); });                                 \
  }                                                                                                        \
  int __tsan_atomic##bits##_compare_exchange_strong(volatile T* address, T* expected, T value, int, int) { \
    return Atomic(address, FT_CODE, [&](volatile T* at) -> T {                                             \
      return __atomic_compare_exchange_n(at, expected, value, false, 5, 5);                                \
    });                                                                                                    \
  }

extern "C" {

void __tsan_init() {}
void __tsan_func_entry(void*) {}
void __tsan_func_exit() {}
FT_ACCESS(1)
FT_ACCESS(2)
FT_ACCESS(4)
FT_ACCESS(8)
FT_ACCESS(16)
void __tsan_read_range(void* address, size_t bytes) {
  RaceWatch::Own().Note(address, bytes, Access::kRead, FT_CODE);
}
void __tsan_write_range(void* address, size_t bytes) {
  RaceWatch::Own().Note(address, bytes, Access::kWrite, FT_CODE);
}
void __tsan_vptr_update(void**, void*) {}
FT_ATOMIC(32, unsigned)
FT_ATOMIC(64, unsigned long long)
// Of reference counts, in code of the host.
unsigned __tsan_atomic32_fetch_sub(volatile unsigned* address, unsigned value, int) {
  return __atomic_fetch_sub(address, value, 5);
}
void __tsan_atomic_thread_fence(int) { __atomic_thread_fence(5); }

}  // extern "C"
