// The inputs and outputs of train_step by what they mean.
#pragma once

#include <cstdint>

#include "absl/status/statusor.h"
#include "runtime/executor/executor.h"
#include "runtime/plan/plan.pb.h"

namespace ft {

// Addresses inside the arena, the same for all steps. Optional ones are null when the program does not have
// them.
struct TrainingPorts {
  int32_t* tokens = nullptr;   // [batch, seq_len]
  int32_t* targets = nullptr;  // [batch, seq_len]
  float* lr = nullptr;         // optional
  int64_t* step = nullptr;     // optional; from 0
  int64_t* rng = nullptr;      // optional; seed, step, rank
  const float* loss = nullptr;
  const float* grad_norm = nullptr;  // optional
};

// Errors: FailedPrecondition when a port is missing or has another type or size than `plan` asks for.
absl::StatusOr<TrainingPorts> FindTrainingPorts(const proto::Plan& plan, const Executor& executor,
                                                int program);

// The rng port of a program that needs nothing else (init); null when there is none. Errors as above.
absl::StatusOr<int64_t*> FindRngPort(const Executor& executor, int program);

}  // namespace ft
