// CUDA's execution model on the host, for tests: what device_code/gpu.h promises to device code. The threads
// of a block are fibers of the calling thread and run until they wait for each other; blocks run one after
// the other. Memory holds garbage (0xCD) until it is written, and waiting that would never end is reported
// with the threads and their places, as an error of the launch.
//
// Stricter than a GPU: threads that have exited do not count as arrived, neither at a barrier nor in a mask.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>

#define __global__
#define __device__
#define __host__
#define __forceinline__ inline
#define __launch_bounds__(...)
#define __align__(bytes) __attribute__((aligned(bytes)))
// Used: by more than the compiler sees (SpoilStaticShared), so it must not guess what is in it.
#define __shared__ static thread_local __attribute__((used))

namespace ft::cuda::emulation {

struct Extent3 {
  unsigned x, y, z;
};

}  // namespace ft::cuda::emulation

// Of the fiber that is running.
extern constinit thread_local ft::cuda::emulation::Extent3 threadIdx, blockIdx, blockDim, gridDim;

namespace ft::cuda::emulation {

// Where a barrier or warp operation stands. Threads meet when they are at the same place.
struct Place {
  const char* file;
  int line;
  bool operator==(const Place&) const = default;
};

enum class Meeting : uint8_t {
  kSyncWarp,
  kShuffle,
  kShuffleUp,
  kShuffleDown,
  kShuffleXor,
  kBallot,
  kLanes,
  kProduct
};

enum class Vote : uint8_t { kNone, kOr, kAnd, kCount };

// What a thread says at a meeting of lanes.
struct Message {
  Meeting meeting;
  unsigned mask;
  uint64_t value;
  int argument;  // of a shuffle: lane, delta or xor
  int width;
};

// Waits for all threads of the block and returns what the vote among them gave.
int MeetBlock(Vote vote, bool predicate, Place place);
// Waits for the lanes of the mask; the shuffled value or the ballot.
uint64_t MeetWarp(const Message& message, Place place);
unsigned OwnLane();
void* DynamicSharedMemory();

template <typename T>
T Shuffle(Meeting meeting, unsigned mask, T value, int argument, int width, Place place) {
  static_assert(std::is_arithmetic_v<T> && (sizeof(T) == 4 || sizeof(T) == 8));
  uint64_t bits = 0;
  std::memcpy(&bits, &value, sizeof(T));
  bits = MeetWarp({meeting, mask, bits, argument, width}, place);
  std::memcpy(&value, &bits, sizeof(T));
  return value;
}

}  // namespace ft::cuda::emulation

#define FT_PLACE const char *file = __builtin_FILE(), int line = __builtin_LINE()

inline void __syncthreads(FT_PLACE) {
  ft::cuda::emulation::MeetBlock(ft::cuda::emulation::Vote::kNone, false, {file, line});
}
inline int __syncthreads_or(int predicate, FT_PLACE) {
  return ft::cuda::emulation::MeetBlock(ft::cuda::emulation::Vote::kOr, predicate != 0, {file, line});
}
inline int __syncthreads_and(int predicate, FT_PLACE) {
  return ft::cuda::emulation::MeetBlock(ft::cuda::emulation::Vote::kAnd, predicate != 0, {file, line});
}
inline int __syncthreads_count(int predicate, FT_PLACE) {
  return ft::cuda::emulation::MeetBlock(ft::cuda::emulation::Vote::kCount, predicate != 0, {file, line});
}

inline void __syncwarp(unsigned mask = 0xFFFFFFFFu, FT_PLACE) {
  ft::cuda::emulation::MeetWarp({ft::cuda::emulation::Meeting::kSyncWarp, mask, 0, 0, 32}, {file, line});
}
template <typename T>
T __shfl_sync(unsigned mask, T value, int lane, int width = 32, FT_PLACE) {
  return ft::cuda::emulation::Shuffle(ft::cuda::emulation::Meeting::kShuffle, mask, value, lane, width,
                                      {file, line});
}
template <typename T>
T __shfl_up_sync(unsigned mask, T value, unsigned delta, int width = 32, FT_PLACE) {
  return ft::cuda::emulation::Shuffle(ft::cuda::emulation::Meeting::kShuffleUp, mask, value,
                                      static_cast<int>(delta), width, {file, line});
}
template <typename T>
T __shfl_down_sync(unsigned mask, T value, unsigned delta, int width = 32, FT_PLACE) {
  return ft::cuda::emulation::Shuffle(ft::cuda::emulation::Meeting::kShuffleDown, mask, value,
                                      static_cast<int>(delta), width, {file, line});
}
template <typename T>
T __shfl_xor_sync(unsigned mask, T value, int lanes, int width = 32, FT_PLACE) {
  return ft::cuda::emulation::Shuffle(ft::cuda::emulation::Meeting::kShuffleXor, mask, value, lanes, width,
                                      {file, line});
}
inline unsigned __ballot_sync(unsigned mask, int predicate, FT_PLACE) {
  return static_cast<unsigned>(ft::cuda::emulation::MeetWarp(
      {ft::cuda::emulation::Meeting::kBallot, mask, predicate != 0, 0, 32}, {file, line}));
}
inline int __any_sync(unsigned mask, int predicate, FT_PLACE) {
  return __ballot_sync(mask, predicate, file, line) != 0;
}
inline int __all_sync(unsigned mask, int predicate, FT_PLACE) {
  return __ballot_sync(mask, predicate, file, line) == mask;
}
// Lanes are promised nothing about who else is active: each finds itself alone.
inline unsigned __activemask() { return 1u << ft::cuda::emulation::OwnLane(); }

#undef FT_PLACE

template <typename T>
inline constexpr bool kFtAtomic =
    std::is_same_v<T, int> || std::is_same_v<T, unsigned> || std::is_same_v<T, unsigned long long>;

template <typename T>
  requires kFtAtomic<T>
T atomicAdd(T* address, std::type_identity_t<T> value) {
  return __atomic_fetch_add(address, value, __ATOMIC_RELAXED);
}
template <typename T>
  requires kFtAtomic<T>
T atomicOr(T* address, std::type_identity_t<T> value) {
  return __atomic_fetch_or(address, value, __ATOMIC_RELAXED);
}
template <typename T>
  requires kFtAtomic<T>
T atomicMax(T* address, std::type_identity_t<T> value) {
  T old = __atomic_load_n(address, __ATOMIC_RELAXED);
  while (old < value &&
         !__atomic_compare_exchange_n(address, &old, value, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {
  }
  return old;
}

inline void __threadfence() { __atomic_thread_fence(__ATOMIC_SEQ_CST); }
inline void __threadfence_block() { __atomic_thread_fence(__ATOMIC_SEQ_CST); }
inline void __threadfence_system() { __atomic_thread_fence(__ATOMIC_SEQ_CST); }

template <typename T>
T __ldg(const T* address) {
  return *address;
}

inline int __clz(int x) { return x == 0 ? 32 : __builtin_clz(static_cast<unsigned>(x)); }
inline int __clzll(long long x) { return x == 0 ? 64 : __builtin_clzll(static_cast<unsigned long long>(x)); }
inline int __popc(unsigned x) { return __builtin_popcount(x); }
inline int __popcll(unsigned long long x) { return __builtin_popcountll(x); }
inline int __ffs(int x) { return __builtin_ffs(x); }
inline unsigned __umulhi(unsigned a, unsigned b) {
  return static_cast<unsigned>(static_cast<uint64_t>(a) * b >> 32);
}
inline unsigned long long __umul64hi(unsigned long long a, unsigned long long b) {
  return static_cast<unsigned long long>(static_cast<unsigned __int128>(a) * b >> 64);
}
inline unsigned __float_as_uint(float x) { return __builtin_bit_cast(unsigned, x); }
inline int __float_as_int(float x) { return __builtin_bit_cast(int, x); }
inline float __uint_as_float(unsigned x) { return __builtin_bit_cast(float, x); }
inline float __int_as_float(int x) { return __builtin_bit_cast(float, x); }
inline long long __double_as_longlong(double x) { return __builtin_bit_cast(long long, x); }
inline double __longlong_as_double(long long x) { return __builtin_bit_cast(double, x); }
inline float rsqrtf(float x) { return static_cast<float>(1.0 / std::sqrt(static_cast<double>(x))); }
inline double rsqrt(double x) { return 1.0 / std::sqrt(x); }
// No contraction, whatever the compiler's options: the operands go through the door of a function.
inline float __fmaf_rn(float a, float b, float c) { return std::fma(a, b, c); }
inline float __fmul_rn(float a, float b) { return a * b; }
inline float __fadd_rn(float a, float b) { return a + b; }
inline float __fsub_rn(float a, float b) { return a - b; }
inline float __fdiv_rn(float a, float b) { return a / b; }
inline float __fsqrt_rn(float x) { return std::sqrt(x); }
inline double __fma_rn(double a, double b, double c) { return std::fma(a, b, c); }
inline double __dmul_rn(double a, double b) { return a * b; }
inline double __dadd_rn(double a, double b) { return a + b; }
