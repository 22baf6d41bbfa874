// Ends the process in an orderly way when a signal arrives or another rank is lost, and in any case soon.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"

namespace ft {

// SIGTERM, SIGINT and SIGHUP are blocked in all threads and taken by one of its own, which cancels the run
// and leaves it two seconds to clean up, or what Allow says; then, or at once when there is nothing to
// cancel, it raises the signal again with its default action.
class ProcessGuard {
 public:
  // To be made before any other thread. One per process. Errors: PosixError's and StartThread's (exit status
  // 74); the signals are as before then.
  static absl::StatusOr<std::unique_ptr<ProcessGuard>> Start();
  ~ProcessGuard();

  // Called on a signal or a lost peer, from the guard's thread. Empty: nothing needs cleaning up. Returns
  // once no call of the function before is in progress.
  void OnCancel(std::function<void(const absl::Status&)> cancel);

  // Another rank is gone: cancels. When the process is still there after two seconds it exits with 75 after
  // printing `prefix` and the reason. Does not block; thread-safe.
  void PeerLost(const absl::Status& reason);
  // The run has failed, but what runs it may wait for ever for a device that does not let go. When the
  // process is still there after `seconds`, it ends as above, with the reason's status. Likewise.
  void Failed(const absl::Status& reason, int seconds = 15);
  void set_prefix(std::string prefix);

  // Cleaning up may take `seconds` from now on, where less would be left: what is being written is worth
  // that.
  void Allow(int seconds);

  // The signal that was received, 0 for none.
  int signal() const { return signal_.load(); }

  // Ends by the received signal, if any; does not return then.
  void RaiseAgain() const;

 private:
  ProcessGuard() = default;
  absl::Status Open();
  void Loop();
  void EndBySignal();
  void EndIn(const absl::Status& reason, int seconds);
  void Cancel(const absl::Status& reason);
  // Waits for the guard's end, and for `signals`: what came first, or nothing when `seconds` have gone by and
  // no more is allowed.
  enum class Awaited { kEnd, kSignal, kNothing };
  Awaited Await(int seconds, bool signals);

  int signal_fd_ = -1;
  int wake_fd_ = -1;  // becomes readable when there is a reason to end
  int end_fd_ = -1;   // becomes readable when the process is done
  std::atomic<int> signal_ = 0;
  std::mutex mutex_;
  absl::Time allowed_ = absl::InfinitePast();  // until when it may clean up
  std::function<void(const absl::Status&)> cancel_;
  absl::Status reason_;  // why the process is to end, and how soon
  int seconds_ = 0;
  std::string prefix_ = "ftexec: ";
  std::thread thread_;
};

}  // namespace ft
