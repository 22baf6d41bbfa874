// Streams that run side by side on one rank: when each thing on them begins and ends. One event after the
// other, for a plan's instructions (simulate.h) as for commands that an executor enqueued (the null device).
#pragma once

#include <vector>

#include "runtime/cost/instruction_cost.h"

namespace ft {

struct ReplayItem {
  int stream = 0;  // each runs its items in order
  InstructionCost cost;
  double launched_s = 0;   // not before
  std::vector<int> after;  // items that are done before it begins; earlier ones
};

struct ReplayedItem {
  double reached = 0;  // its stream was done with what stands before it
  double ready = 0;    // that, and all of `after` was done
  double begin = 0;
  double end = 0;
  int last = -1;  // of `after`, the one that ended last; -1: none
};

// Seconds from the beginning. Items that run at the same time are slowed down as their costs say: a kernel by
// the transfer that hurts it most, a transfer by kernels, and by as many others as move bytes over its link.
std::vector<ReplayedItem> Replay(const std::vector<ReplayItem>& items, int streams);

}  // namespace ft
