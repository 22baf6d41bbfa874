// A network that is not there: collectives take as long as over a link of a given latency and bandwidth.
//
// On one machine ranks exchange data through memory, in less time than computing takes; whether a schedule
// hides communication cannot be seen there. The time that is missing is spent asleep, so that it costs no
// processor.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "runtime/collective/communicator.h"

namespace ft {

struct EmulatedLink {
  double gigabits_per_s = 0;  // 10^9 bits a second, as networks are quoted, that a rank sends
  double latency_us = 0;      // of a collective, once for all parts of a bucket
};

// Nanoseconds of a collective over `ranks` whose whole buffers have `bytes` together and travel `passes`
// times (twice for all_reduce): latency + passes * (ranks - 1) / ranks * bytes / bandwidth. 0 for one rank.
int64_t LinkNanoseconds(const EmulatedLink& link, int ranks, uint64_t bytes, int passes);

// Each gather and reduction returns no sooner than it would over `link`, reckoned on each rank from when it
// begins there or, if that is later, from when the one before it was through. Broadcasts and barriers, which
// no step has, are left alone.
std::unique_ptr<Communicator> EmulateLink(std::unique_ptr<Communicator> communicator,
                                          const EmulatedLink& link);

}  // namespace ft
