// The inputs and outputs of a plan's programs by what they mean.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "runtime/executor/executor.h"
#include "runtime/plan/plan.pb.h"

namespace ft {

// Addresses inside the arena, the same for all steps. Optional ones are null when the program does not have
// them.

// What train_micro, train_step and eval_step take alike.
struct BatchPorts {
  std::vector<void*> inputs;       // of the model, in the order of plan.inputs
  int64_t* rng = nullptr;          // optional; seed, micro-step, rank
  float* inverse_ranks = nullptr;  // optional; 1 / the number of ranks
};

struct TrainingPorts {
  BatchPorts batch;
  float* lr = nullptr;      // optional
  int64_t* step = nullptr;  // optional; optimizer steps applied so far
  // Optional; scale, good steps, and with three numbers overflows counted towards the hysteresis. Kept by the
  // program from step to step.
  absl::Span<float> scaler;
  const float* loss = nullptr;
  const float* grad_norm = nullptr;  // optional
  // Optional: how many targets of a step count, over all ranks and micro-steps, and how many there are.
  absl::Span<const int64_t> counted;
};

// Errors of all: FailedPrecondition when a port is missing or has another type or size than `plan` asks for.
absl::StatusOr<TrainingPorts> FindTrainingPorts(const proto::Plan& plan, const Executor& executor,
                                                int program);
absl::StatusOr<BatchPorts> FindBatchPorts(const proto::Plan& plan, const Executor& executor, int program);

// One of eval_step's: a sum over what the loss counts of all ranks, and its number: the loss as "loss_sum",
// and the model's named outputs.
absl::StatusOr<const float*> FindSumPort(const proto::Plan& plan, const Executor& executor, int program,
                                         const std::string& name);

// The rng port of a program that needs nothing else (init); null when there is none.
absl::StatusOr<int64_t*> FindRngPort(const proto::Plan& plan, const Executor& executor, int program);

// Writes 1 / world_size, unless `inverse_ranks` is null.
void WriteInverseRanks(float* inverse_ranks, int world_size);

// Writes what the update of a step takes, as far as there are ports for it.
void WriteUpdate(const TrainingPorts& ports, double lr, int64_t applied);

// Writes {seed, micro_step, rank}, unless `rng` is null.
void WriteRng(int64_t* rng, uint64_t seed, int64_t micro_step, int rank);

}  // namespace ft
