// What a bound plan costs a rank: memory, traffic, FLOPs. Numbers only; `ftc explain` prints them.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "runtime/plan/bind.h"
#include "runtime/plan/plan.pb.h"

namespace ft {

// Device memory of one rank, in bytes.
struct MemoryReport {
  uint64_t arena_bytes = 0;
  uint64_t host_arena_bytes = 0;
  // By proto::MemoryClass: all persistent buffers, and those others that live at the instruction at which
  // most bytes are live. Each buffer counts with its size rounded up to 256.
  std::array<uint64_t, proto::MemoryClass_ARRAYSIZE> by_class = {};
  // What no buffer uses at that instruction: arena_bytes minus the sum of by_class.
  uint64_t padding = 0;
  // The instruction, and what it does; empty when no buffer lives for a part of a program only.
  std::string peak;
  // What lies in memory between steps, sliced or whole: flat buffers of all units.
  struct AtRest {
    uint64_t parameters = 0;
    uint64_t gradients = 0;
    uint64_t optimizer_state = 0;
    uint64_t total() const { return parameters + gradients + optimizer_state; }
  } at_rest;
};

// Of one kind of collective, per rank and training step.
struct CollectiveTraffic {
  uint64_t bytes =
      0;  // sent by a rank: (n - 1) / n of the whole, twice that for all_reduce, n the ranks of its axis
  uint64_t count = 0;  // collectives, of one rank as well
};

struct Traffic {
  CollectiveTraffic all_gather;
  CollectiveTraffic reduce_scatter;
  CollectiveTraffic all_reduce;
  uint64_t total_bytes() const { return all_gather.bytes + reduce_scatter.bytes + all_reduce.bytes; }
};

struct TrafficReport {
  Traffic total;
  std::vector<Traffic> by_unit;  // by index of the unit
  Traffic other;                 // scalars: loss, gradient norm
};

// Floating point operations of one rank in one training step; a multiply-add is two.
struct FlopsReport {
  uint64_t forward = 0;
  uint64_t backward = 0;
  uint64_t optimizer = 0;
  uint64_t total() const { return forward + backward + optimizer; }
};

struct PlanReport {
  MemoryReport memory;
  TrafficReport traffic;
  FlopsReport flops;
  uint64_t parameters = 0;  // elements of all parameters, without padding
};

// Elements of all parameters, without padding.
uint64_t CountParameters(const proto::Plan& plan);

// `bound` is BindPlan's result for `plan`, which has passed VerifyPlan. Traffic and FLOPs are those of the
// program train_step; a plan without it has none.
PlanReport ReportPlan(const proto::Plan& plan, const BoundPlan& bound);

}  // namespace ft
