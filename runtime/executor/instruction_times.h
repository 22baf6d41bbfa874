// How long each instruction of one step of a run took.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include "runtime/executor/executor.h"
#include "runtime/executor/step_observer.h"

namespace ft {

class InstructionTimes final : public StepObserver {
 public:
  // Of the step of this number. The plan and the executor must outlive it.
  InstructionTimes(const proto::Plan& plan, Executor& executor, int64_t step);
  ~InstructionTimes() override;

  void BeginStep(int64_t step) override;
  void EndStep() override;
  void BeginProgram(int program) override { program_ = program; }
  void Count(const StepMetrics&) override {}

  int64_t step() const { return step_; }
  bool measured() const { return measured_; }  // whether the step is over
  // Seconds of all its runs in the step, without what it waited; 0: it did not run.
  double Seconds(int program, int instruction) const;

 private:
  class StreamTimes;

  Executor& executor_;
  const int64_t step_;
  bool observing_ = false, measured_ = false;
  int program_ = 0;                       // that runs
  std::vector<std::vector<int64_t>> ns_;  // by program and instruction, each of one stream
  std::array<std::unique_ptr<StreamTimes>, kNumStreams> streams_;
};

}  // namespace ft
