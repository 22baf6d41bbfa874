// One pool of threads for everything: OpenMP's. Kernels cut their work into pieces that depend on shapes
// alone.
#pragma once

#include <omp.h>

#include <algorithm>
#include <cstdint>

namespace ft::cpu {

// Below this many elementary operations (roughly 20 microseconds' worth) waking threads costs more than it
// brings.
inline constexpr int64_t kSerialWork = int64_t{1} << 17;

// Threads for `work` elementary operations (a multiply-add, or an element moved).
inline int ThreadsFor(int num_threads, int64_t work) {
  return work < kSerialWork ? 1 : std::max(1, num_threads);
}

// f(piece) for pieces 0 ... count - 1.
template <typename F>
void ParallelFor(int64_t count, int threads, const F& f) {
  if (threads <= 1 || count <= 1) {
    for (int64_t i = 0; i < count; ++i) f(i);
    return;
  }
#pragma omp parallel for num_threads(threads) schedule(static)
  for (int64_t i = 0; i < count; ++i) f(i);
}

// As ParallelFor, for pieces of unequal cost.
template <typename F>
void ParallelForUneven(int64_t count, int threads, const F& f) {
  if (threads <= 1 || count <= 1) {
    for (int64_t i = 0; i < count; ++i) f(i);
    return;
  }
#pragma omp parallel for num_threads(threads) schedule(dynamic, 1)
  for (int64_t i = 0; i < count; ++i) f(i);
}

// f(begin, end) for consecutive ranges of at most `grain` that cover [0, count).
template <typename F>
void ParallelRanges(int64_t count, int64_t grain, int threads, const F& f) {
  ParallelFor((count + grain - 1) / grain, threads,
              [&](int64_t i) { f(i * grain, std::min(count, (i + 1) * grain)); });
}

}  // namespace ft::cpu
