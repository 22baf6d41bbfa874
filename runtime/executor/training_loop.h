// Initialises a model and trains it, step after step.
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "runtime/collective/communicator.h"
#include "runtime/data/batch_sampler.h"
#include "runtime/executor/activity.h"
#include "runtime/executor/bad_steps.h"
#include "runtime/executor/evaluation.h"
#include "runtime/executor/executor.h"
#include "runtime/executor/lr_schedule.h"
#include "runtime/executor/step_observer.h"
#include "runtime/executor/training_ports.h"
#include "runtime/executor/training_programs.h"
#include "runtime/executor/training_settings.h"
#include "runtime/metrics/jsonl.h"
#include "runtime/metrics/progress.h"
#include "runtime/metrics/training_events.h"

namespace ft {

// How far a run is. Each is counted on its own: a run may go on with other ranks, batch and micro-steps.
struct TrainingPosition {
  int64_t steps = 0;        // done, whether applied or not
  int64_t applied = 0;      // optimizer steps: what the rate and the optimizer count
  int64_t micro_steps = 0;  // done: what random numbers count
  int64_t sequences = 0;    // of the data, consumed over all ranks
};

// What else decides how the next step ends.
struct TrainingStability {
  int64_t bad_in_a_row = 0;
  int64_t overflows_in_a_row = 0;
  std::vector<float> scaler;  // TrainingPorts::scaler; empty without loss scaling
};

struct TrainingOptions {
  int64_t steps = 0;   // of the whole run, those before it was resumed included
  LrSchedule lr = {};  // at a step: its value at the number of optimizer steps applied before it
  uint64_t seed = 42;
  int rank = 0;
  int world_size = 1;
  int64_t max_bad_steps = RunSettings().max_bad_steps;  // in a row, before the run ends
  bool find_nan = false;   // whether a step that is not finite is replayed, to say where it began
  int64_t eval_every = 0;  // steps between two evaluations; 0: only after the last step
  double peak_flops = 0;   // FLOP/s of the rank's device by its data sheet, for MFU; 0: unknown
  // Percent of the last moments in which the device was busy, negative when unknown; asked about once a
  // second.
  std::function<double()> utilization = {};
};

// Where the numbers of each step go; null ones are left out. Metrics, progress, log, events and compute_time
// get them while the next step runs, or when Report is called.
struct TrainingOutputs {
  MetricsFile* metrics = nullptr;
  Progress* progress = nullptr;
  Progress* log = nullptr;  // the rank's own log
  TrainingEvents* events = nullptr;
  StepObserver* observer = nullptr;
  std::function<void(const std::string& line)> warn = {};  // steps not applied, evaluations of nothing
  // Called with what is known of each step.
  std::function<void(const StepMetrics& metrics)> measured = {};
  // What the checkpoint cost that was finished since the last step, if there was one.
  std::function<std::optional<SaveCost>()> save_cost = {};
  // Told how long this rank computed in each step, waiting for communication and copies left out; returns
  // what is known of all ranks.
  std::function<std::optional<ComputeSpread>(int64_t step, double compute_ms)> compute_time = {};
  // Over all ranks, for what they find when they replay a step; null: there is one alone. Used while no
  // program runs.
  Communicator* world = nullptr;
  ActivityRecord* activity = nullptr;  // told what the loop is at
  // Called after each step, and what is evaluated after it (whose loss it gets), with the steps done; nothing
  // runs on the device then. Whether the run ends here. The step need not be reported yet (Report).
  std::function<absl::StatusOr<bool>(int64_t steps_done, std::optional<double> eval_loss)> boundary = {};
};

class TrainingLoop {
 public:
  // Plan and executor must outlive the loop; of any device. Errors: FailedPrecondition when
  // the plan lacks a program or port; InvalidArgument for settings of it that make no sense.
  static absl::StatusOr<TrainingLoop> Create(const proto::Plan& plan, Executor& executor,
                                             const TrainingOptions& options);

  // Draws parameters from the seed and zeroes the optimizer state, by the plan's init program, and begins
  // loss scaling.
  absl::Status Initialize();

  // With weights from a file, this and LoadWeights take its place: a fresh arena is zero already.
  void InitializeWithoutParameters();

  // Goes on where another run was, whose state is in the arena: after this and LoadState the next step is the
  // one that would have come there. Loss scaling that was not there begins anew; one that is not here any
  // more is dropped, and so is a scale that the plan fixes. Errors: InvalidArgument for a state of it that is
  // not of the plan's size.
  absl::Status Resume(const TrainingPosition& position, const TrainingStability& stability);

  const TrainingPosition& position() const { return position_; }
  TrainingStability stability() const;

  // Runs all steps that are left. A step is plan.micro_steps micro-steps: train_micro, and train_step for the
  // last. The j-th micro-step since the run began or was resumed is number j for `sampler`, and is read while
  // the one before runs; random numbers count those before, too. With an evaluator, evaluates as the options
  // say, and after the last step; a run that is resumed after it evaluates nothing. Nothing is allocated from
  // the second step on but for the words about a step that was not applied, and for finding out why. Errors:
  // those of collectives and of `boundary`; FailedPrecondition when too many steps in a row had a loss or
  // gradient norm that is not finite, after the last one's metrics are written.
  absl::Status Run(const BatchSampler& sampler, const TrainingOutputs& outputs,
                   Evaluator* evaluator = nullptr);

  // Writes the numbers of the last step, unless they have been; when Run has returned, they have. Before
  // whatever is to come after them: a line, a checkpoint that stays. Errors: the first that Run has had here.
  absl::Status Report();

  const TrainingPrograms& programs() const { return programs_; }

  // Whether Run ended because of numbers that were not finite. Every rank sees the same numbers, so all of
  // them end so, at the same step.
  bool diverged() const { return diverged_; }

 private:
  TrainingLoop(const proto::Plan& plan, Executor& executor, const TrainingOptions& options,
               const LossScaling& scaling);
  absl::Status RunSteps(const BatchSampler& sampler, const TrainingOutputs& outputs, Evaluator* evaluator);
  absl::Status RunStep(int64_t step, const BatchSampler& sampler, const TrainingOutputs& outputs);
  absl::Status RunMicroStep(const BatchSampler& sampler, int64_t micro_step, const TrainingOutputs& outputs);
  bool IsLast(int64_t micro_step) const { return micro_step + 1 == MicroSteps(); }
  int64_t MicroSteps() const { return static_cast<int64_t>(programs_.micro_steps); }
  // Of a step's micro-step.
  int ProgramOf(int64_t micro_step) const { return IsLast(micro_step) ? programs_.step : programs_.micro; }
  const BatchPorts& PortsOf(int64_t micro_step) const {
    return IsLast(micro_step) ? ports_.batch : micro_ports_;
  }
  void ReadAhead(const BatchSampler& sampler, int64_t micro_step, const TrainingOutputs& outputs);
  absl::Status Settle(StepMetrics& metrics, const BatchSampler& sampler, const TrainingOutputs& outputs);
  absl::Status Write(StepMetrics metrics) const;
  absl::StatusOr<std::string> FindNan(const BatchSampler& sampler, const TrainingOutputs& outputs);
  std::optional<double> Utilization();
  absl::StatusOr<std::optional<double>> Evaluate(int64_t step, const TrainingOutputs& outputs,
                                                 Evaluator& evaluator);

  const proto::Plan* plan_;
  Executor* executor_;
  TrainingOptions options_;
  uint64_t seq_len_;
  bool takes_tokens_;
  double flops_per_step_ = 0;  // model FLOPs of this rank
  std::optional<double> utilization_ = {};
  std::chrono::steady_clock::time_point utilization_asked_ = {};
  uint64_t sequences_per_step_ = 0;  // over all micro-steps and ranks
  int init_program_ = 0;
  int64_t* init_rng_ = nullptr;
  TrainingPrograms programs_;
  BatchPorts micro_ports_;
  TrainingPorts ports_;
  LossScaling scaling_;
  BadSteps bad_steps_;
  TrainingPosition position_;
  int64_t taken_ = 0;  // micro-steps since the run began or was resumed
  // The executor's runs when the next batch had been read; another run may have been given another batch.
  std::optional<uint64_t> runs_when_read_ = {};
  const TrainingOutputs* outputs_ = nullptr;    // of Run
  std::optional<StepMetrics> unreported_ = {};  // of the last step
  absl::Status reported_;                       // how that went
  bool resumed_ = false;
  bool diverged_ = false;
  // Before the step, as far as a step that is not applied changes it.
  std::array<float, 3> scaler_before_ = {};
  std::string found_;  // about the first step of those in a row that were not finite
};

}  // namespace ft
