// What a bound plan costs a rank: memory, traffic, FLOPs. Numbers only; `ftc explain` prints them.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "runtime/plan/bind.h"
#include "runtime/plan/plan.pb.h"

namespace ft {

// A buffer that is live at the peak.
struct LiveBuffer {
  uint32_t buffer = 0;  // its index
  uint64_t bytes = 0;   // rounded up to 256
};

// One memory space of one rank, in bytes.
struct ArenaReport {
  uint64_t arena_bytes = 0;
  // What no arrangement of the buffers can go below: the most bytes that are live at once.
  uint64_t max_live_bytes = 0;
  uint64_t persistent_bytes = 0;
  // By proto::MemoryClass: all persistent buffers, and those others that live at the instruction at which
  // most bytes are live. Each buffer counts with its size rounded up to 256.
  std::array<uint64_t, proto::MemoryClass_ARRAYSIZE> by_class = {};
  // What no buffer uses at that instruction: arena_bytes minus the sum of by_class.
  uint64_t padding = 0;
  // The instruction, and what it does; empty when no buffer lives for a part of a program only.
  std::string peak;
  // The buffers that by_class counts, the largest first.
  std::vector<LiveBuffer> live;
};

struct MemoryReport {
  ArenaReport device;
  ArenaReport host;
  // What lies in memory between steps, sliced or whole: flat buffers of all units, in both spaces.
  struct AtRest {
    uint64_t parameters = 0;  // what is computed with
    uint64_t gradients = 0;
    uint64_t optimizer_state = 0;  // moments and master weights
    uint64_t total() const { return parameters + gradients + optimizer_state; }
    // Parts of the above: sums over micro-steps (of gradients), fp32 weights beside 16-bit ones (of
    // optimizer_state), and what lies in host memory.
    uint64_t accumulated = 0;
    uint64_t master = 0;
    uint64_t host = 0;
  } at_rest;
};

// Of one kind of transfer, per rank.
struct TransferTraffic {
  // Sent by a rank: (n - 1) / n of the whole, twice that for all_reduce, n the ranks of its axis. Of a copy:
  // its bytes.
  uint64_t bytes = 0;
  uint64_t count = 0;    // transfers, of one rank as well; a bucket is one
  uint64_t buffers = 0;  // in them

  void Add(const TransferTraffic& other, uint64_t times);
  friend bool operator==(const TransferTraffic&, const TransferTraffic&) = default;
};

struct Traffic {
  TransferTraffic all_gather;
  TransferTraffic reduce_scatter;
  TransferTraffic all_reduce;
  TransferTraffic all_to_all;
  TransferTraffic h2d;  // between the memories of one rank
  TransferTraffic d2h;
  // Between ranks.
  uint64_t total_bytes() const {
    return all_gather.bytes + reduce_scatter.bytes + all_reduce.bytes + all_to_all.bytes;
  }
  uint64_t collectives() const {
    return all_gather.count + reduce_scatter.count + all_reduce.count + all_to_all.count;
  }

  void Add(const Traffic& other, uint64_t times);
  friend bool operator==(const Traffic&, const Traffic&) = default;
};

struct TrafficReport {
  Traffic total;
  // By index of the unit. A bucket counts once for each of its units.
  std::vector<Traffic> by_unit;
  Traffic other;                                       // scalars: loss, gradient norm; copies of activations
  std::array<Traffic, proto::Axis_ARRAYSIZE> by_axis;  // copies have none

  void Add(const TrafficReport& other, uint64_t times);
};

// Floating point operations of one rank; a multiply-add is two.
struct FlopsReport {
  uint64_t forward = 0;
  uint64_t recompute = 0;
  uint64_t backward = 0;
  uint64_t optimizer = 0;
  // Model FLOPs, those of the above that MFU is reckoned with: matrix products (attention's too; of causal
  // attention the half that is computed) that the results need. Neither what is recomputed, by the plan or
  // inside of a kernel, nor elementwise work, norms, softmax, the optimizer.
  uint64_t model = 0;
  uint64_t total() const { return forward + recompute + backward + optimizer; }

  void Add(const FlopsReport& other, uint64_t times);
};

struct ProgramReport {
  std::string name;
  uint64_t runs = 0;  // in a training step
  TrafficReport traffic;
  FlopsReport flops;
};

struct PlanReport {
  MemoryReport memory;
  // Of a training step: of train_micro times the micro-steps but one, and of train_step.
  TrafficReport traffic;
  FlopsReport flops;
  std::vector<ProgramReport> programs;
  uint64_t micro_steps = 1;
  uint64_t parameters = 0;         // elements of all parameters, without padding
  uint64_t frozen = 0;             // of them not trained
  uint64_t frozen_bytes_each = 0;  // that these take at rest, the most of any unit
};

// The element type of the first operand, but for scalars, of the kernel with the most FLOPs: MFU is reckoned
// against the peak of this type.
proto::DType MainType(const proto::Plan& plan);

// Model FLOPs (FlopsReport::model) of a training step of one rank, with all its micro-steps.
uint64_t ModelFlops(const proto::Plan& plan);

// Elements of all parameters, without padding; of those that are not trained.
uint64_t CountParameters(const proto::Plan& plan);
uint64_t CountFrozen(const proto::Plan& plan);

// Times that a program runs in a training step.
uint64_t RunsInStep(const proto::Plan& plan, const proto::Program& program);

// `bound` is BindPlan's result for `plan`, which has passed VerifyPlan.
MemoryReport ReportMemory(const proto::Plan& plan, const BoundPlan& bound);

// The same, and everything else.
PlanReport ReportPlan(const proto::Plan& plan, const BoundPlan& bound);

}  // namespace ft
