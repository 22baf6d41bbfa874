// What every run of a rank is, whether it trains or not: between meeting the others and goodbye.
#pragma once

#include <memory>
#include <string>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "runtime/executor/executor.h"
#include "tools/ftexec/failure_report.h"
#include "tools/ftexec/flags.h"
#include "tools/ftexec/job.h"
#include "tools/ftexec/peers.h"
#include "tools/ftexec/process_guard.h"
#include "tools/ftexec/rank_device.h"

namespace ft {

// All that it is given outlives it.
class RankRun {
 public:
  RankRun(const Flags& flags, Job& job, RankDevice& device, Peers& peers, ProcessGuard& guard,
          FailureReport& report);
  virtual ~RankRun();

  virtual absl::Status Execute() = 0;

  // Whether it ended because of numbers that all ranks saw.
  virtual bool diverged() const { return false; }
  // After it failed, and the others were told.
  virtual void KeepTrace() {}

 protected:
  // From here on a signal, or a rank that is lost, ends what the executor runs.
  absl::Status CreateExecutor();

  // Rank 0, about all of them.
  virtual void Say(const std::string& line);

  const Flags& flags_;
  Job& job_;
  RankDevice& device_;
  Peers& peers_;
  ProcessGuard& guard_;
  FailureReport& report_;
  std::unique_ptr<Executor> executor_;
};

using MakeRankRun = absl::FunctionRef<std::unique_ptr<RankRun>(RankDevice& device, Peers& peers)>;

// Opens the device, meets the other ranks, executes the run that `make` makes, and parts from them. `report`
// learns what it is at, and is written when it fails. Errors: whatever ended the run, to be printed after the
// rank's name.
absl::Status RunTogether(const Flags& flags, Job& job, const NcclSource& load_nccl, ProcessGuard& guard,
                         FailureReport& report, MakeRankRun make);

}  // namespace ft
