// What lies in the memory of a GPU beside the arena, as far as a run can see it, against what was announced.
#pragma once

#include <cstdint>
#include <string>

#include "runtime/plan/bind.h"
#include "runtime/plan/plan.pb.h"

namespace ft {

// In bytes, of one device.
struct DeviceMemoryUse {
  uint64_t used = 0;         // by all processes; 0: not known
  uint64_t used_before = 0;  // when the run had not begun
  uint64_t arena = 0;

  // What the run takes beside the arena.
  uint64_t beside() const;
};

// "device memory in use: 900 bytes, 500 of them the arena, 300 context, libraries and communicators, 100
// other processes\n"; empty when it is not known.
std::string MemoryLine(const DeviceMemoryUse& memory);

// A line for the user when more lies beside the arena than the target of the plan announces, so that budgets
// and ftc explain reckon with too little; empty when not, or when it announces nothing.
std::string LowAnnouncement(const proto::Plan& plan, const BoundPlan& bound, const DeviceMemoryUse& memory);

}  // namespace ft
