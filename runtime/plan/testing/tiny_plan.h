// A plan made by hand, for tests: a bigram model with every kind of instruction, that really trains on the
// CPU device.
#pragma once

#include <string>

#include "runtime/plan/plan.pb.h"

namespace ft {

struct TinyPlanOptions {
  bool shard = true;  // full_shard; otherwise no_shard
  // With `shard`: parameters stay whole at rest, gradients are scattered and parameters gathered in place
  // (zero1).
  bool whole_parameters = false;
  // With `shard`: gradients are reduced over replicas too (hybrid_shard).
  bool two_axes = false;
  // Optimizer state in host memory.
  bool offload = false;
  // With `offload`: the host updates, "master" in its memory, whose weights are copied to "parameters".
  bool host_step = false;
  int batch = 2;
  int seq_len = 16;
  int vocab = 256;
  int hidden = 12;  // 256 x 12 elements = 3 blocks: slices cut parameters
};

// One unit "bigram" with parameters "table" and "head"; programs init and train_step.
proto::Plan TinyPlan(const TinyPlanOptions& options = {});

// Index of the buffer `name`, and of the first instruction of train_step whose title begins with `title`
// ("matmul", "all_gather"). Both must be there.
uint32_t BufferIndex(const proto::Plan& plan, const std::string& name);
int InstructionIndex(const proto::Plan& plan, const std::string& title);

}  // namespace ft
