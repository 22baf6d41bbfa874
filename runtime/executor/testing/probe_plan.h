// A plan whose programs compute nothing: each runs one kernel, `probe`, that a test provides. It sees what
// the training loop wrote into the ports, and answers in their outputs.
#pragma once

#include <functional>
#include <string>

#include "absl/types/span.h"
#include "runtime/device/kernel.h"
#include "runtime/plan/plan.pb.h"

namespace ft {

inline constexpr int64_t kProbeBatch = 2;
inline constexpr int64_t kProbeSeqLen = 4;

// The ports of a program when it runs; those it does not have are null.
struct ProbeCall {
  std::string program;  // init, train_micro, train_step, eval_step
  const int32_t* tokens = nullptr;
  const int32_t* targets = nullptr;
  const int64_t* rng = nullptr;
  float lr = 0;
  int64_t step = 0;
  float* scaler = nullptr;
  float* loss = nullptr;
  float* grad_norm = nullptr;
  float* loss_sum = nullptr;
};

// micro_steps 1: no train_micro. With `scaler`, train_step keeps {scale, good steps, overflows}.
proto::Plan ProbePlan(int micro_steps, bool scaler);

// Makes `probe` a kernel that calls `on_call`; for one test at a time. `on_call` must not allocate where the
// test counts allocations.
void RegisterProbe(KernelRegistry& registry, std::function<void(const ProbeCall&)> on_call);

}  // namespace ft
