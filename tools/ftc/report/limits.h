// What the seconds of a step go to, and each kind of kernel beside what the machine could do.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "runtime/plan/bind.h"
#include "runtime/plan/plan.pb.h"
#include "runtime/plan/target.h"

namespace ftc {

// Which of the two floors of a kernel is the higher one: its FLOPs at the rate that is reached, or its bytes.
enum class Bound { kArithmetic, kMemory };

// Kernels of the device that do the same: a point of the roofline.
struct KernelGroup {
  std::string kernel, phase;
  std::string layer;  // of the first of them
  ft::proto::DType dtype = ft::proto::F32;
  Bound bound = Bound::kMemory;
  uint64_t count = 0;  // in a training step
  uint64_t flops = 0;  // of one of them, of this rank
  uint64_t bytes = 0;
  double seconds = 0;        // of one of them, on average
  double total_seconds = 0;  // of all
};

// A training step as stream compute sees it; the parts sum to its seconds.
struct StepLimits {
  double arithmetic_seconds = 0;  // kernels whose arithmetic takes longer than their bytes
  double memory_seconds = 0;      // the others
  // `compute` stood still for what ran on these streams (the last to end of what a wait waits for).
  std::array<double, ft::proto::Stream_ARRAYSIZE> exposed_seconds = {};
  double launch_seconds = 0;  // `compute` stood still until the host had launched what came next
  double tail_seconds = 0;    // other streams ended later

  double total() const;
  // The largest part: "arithmetic", "memory", "gather", ..., "launch", "tail".
  std::string Largest() const;
};

// Those that take longest in total first.
std::vector<KernelGroup> KernelGroups(const ft::proto::Plan& plan, const ft::BoundPlan& bound,
                                      const ft::Target& target);
StepLimits LimitsOf(const ft::proto::Plan& plan, const ft::BoundPlan& bound, const ft::Target& target);

}  // namespace ftc
