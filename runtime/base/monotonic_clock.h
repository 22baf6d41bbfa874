// The clock of streams, traces and reports.
#pragma once

#include <time.h>

#include <cstdint>

namespace ft {

// Nanoseconds; the same clock as std::chrono::steady_clock, whose times traces compare with these.
inline int64_t MonotonicNs() {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec * int64_t{1000000000} + now.tv_nsec;
}

}  // namespace ft
