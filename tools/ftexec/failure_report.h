// The report that a rank leaves in --log-dir when its run is ended: where it stood, and why it ended.
#pragma once

#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "runtime/collective/rendezvous/rendezvous.h"
#include "runtime/executor/activity.h"
#include "runtime/executor/executor.h"
#include "runtime/postmortem/rank_report.h"
#include "tools/ftexec/job.h"

namespace ft {

// Made before the process guard, so that the guard's thread, which goes before it, can write while the main
// thread stands in something that does not end. A thread of its own writes: a file system that does not
// answer keeps nobody from ending.
class FailureReport {
 public:
  // Without a `folder` nothing is written, and nothing fails. `prefix`: of what is said on standard error.
  FailureReport(std::string folder, const LaunchEnvironment& environment, std::string prefix);
  // Does not wait for a file system that does not answer.
  ~FailureReport();

  // To be called after the guard was made, as it starts the thread. Errors: StartThread's.
  absl::Status Start();

  // What is known of the run from here on. `job` and `executor` are looked at until Detach.
  void SetPlan(const Job& job, const std::string& plan);
  void SetMeeting(const Rendezvous& rendezvous);
  void Attach(const Job& job, const Executor& executor);
  void Detach();

  // What the main thread, and the one that saves, are at.
  ActivityRecord& activity() { return activity_; }
  ActivityRecord& saving() { return saving_; }

  // The run is about to be stopped: what its threads are at from now on is the stopping. The first call
  // counts.
  void Hold();

  // Writes the report, and returns when that is done, or after a few seconds: the run that failed with
  // `status` waits no longer. Only the first call does; later ones wait for it. Says on standard error when
  // the report is lost. `signal`: by which the process ends; 0: by none. Thread-safe.
  void Write(const absl::Status& status, int signal);

 private:
  class Writer;
  void HoldLocked();
  std::string Describe(const absl::Status& status, int signal);
  void DescribeEnd(const absl::Status& status, int signal, RankReport& report) const;

  const std::string folder_, prefix_;
  ActivityRecord activity_, saving_;
  std::mutex mutex_;
  RankReport known_;   // what was set
  bool held_ = false;  // its activities are those of Hold
  const Job* job_ = nullptr;
  const Executor* executor_ = nullptr;
  bool written_ = false;  // or being written
  std::shared_ptr<Writer> writer_;
};

}  // namespace ft
