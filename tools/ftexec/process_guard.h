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
#include "runtime/collective/liveness/wishes.h"

namespace ft {

// SIGTERM, SIGINT, SIGHUP, SIGUSR1 and SIGUSR2 are blocked in all threads and taken by one of its own.
//
// SIGTERM and SIGUSR1 wish for a checkpoint and the end of the run, SIGUSR2 for a checkpoint alone, where
// OnWish says that there will be one. The process has the grace time to end by itself then: the run says so
// (EndedAsWished), and the exit status is kExitEndedAsWished. A second SIGTERM does not wait for that.
//
// Else, and when the grace time is over, a signal cancels the run and leaves it two seconds to clean up, or
// what Allow says; then, or at once when there is nothing to cancel, it is raised again with its default
// action. A SIGUSR2 that nobody can fulfil is said to be ignored.
class ProcessGuard {
 public:
  // To be made before any other thread. One per process. Errors: PosixError's and StartThread's (exit status
  // 74); the signals are as before then.
  static absl::StatusOr<std::unique_ptr<ProcessGuard>> Start();
  ~ProcessGuard();

  // Called on a signal or a lost peer, from the guard's thread. Empty: nothing needs cleaning up. Returns
  // once no call of the function before is in progress.
  void OnCancel(std::function<void(const absl::Status&)> cancel);

  // Called on a wish, from the guard's thread; false: nobody can save. Must not block. Empty: nobody saves
  // here. Returns once no call of the function before is in progress.
  void OnWish(std::function<bool(Wish)> wish);

  // How long a wish for the end may take; 25 s at first, since launchers wait for 30.
  void set_grace(absl::Duration grace);

  // All ranks have saved, and end: as somebody wished, here or elsewhere.
  void EndedAsWished() { ended_as_wished_ = true; }
  bool ended_as_wished() const { return ended_as_wished_; }

  // Another rank is gone: cancels. When the process is still there after two seconds it exits with 75 after
  // printing `prefix` and the reason. A signal meanwhile ends it by that signal, after the same line. Does
  // not block; thread-safe.
  void PeerLost(const absl::Status& reason);
  // The run has failed, but what runs it may wait for ever for a device that does not let go. When the
  // process is still there after `seconds`, it ends as above, with the reason's status. Likewise.
  void Failed(const absl::Status& reason, int seconds = 15);
  void set_prefix(std::string prefix);

  // Called from the guard's thread right before it ends the process, which does not end by itself, with why,
  // and the signal by which it ends, or 0. Has to return soon. Empty: nothing is left to be said. Returns
  // once no call of the function before is in progress.
  void OnEnd(std::function<void(const absl::Status&, int signal)> last_words);

  // Cleaning up may take `seconds` from now on, where less would be left: what is being written is worth
  // that.
  void Allow(int seconds);

  // The signal that the process ends by, 0 for none.
  int signal() const { return signal_.load(); }

  // Ends by the received signal, if any; does not return then.
  void RaiseAgain() const;

 private:
  ProcessGuard() = default;
  absl::Status Open();
  void Loop();
  // Whether the guard has done its work.
  bool Obey(int number);
  bool Ask(Wish wish);
  void EndForReason();
  void EndBySignal(int number);
  void EndBySignal(int number, const absl::Status& reason);
  int TakeSignal();
  absl::Duration grace();
  void Say(const std::string& text);
  void EndWithoutFile();
  void LastWords(const absl::Status& reason, int number);
  void EndIn(const absl::Status& reason, int seconds);
  void Cancel(const absl::Status& reason);
  // Waits for the guard's end, and for `signals`: what came first, or nothing at `until`, or later when more
  // is allowed.
  enum class Awaited { kEnd, kSignal, kNothing };
  Awaited Await(absl::Time until, bool signals);

  int signal_fd_ = -1;
  int wake_fd_ = -1;  // becomes readable when there is a reason to end
  int end_fd_ = -1;   // becomes readable when the process is done
  int file_fd_ = -1;  // becomes readable when a mapped file cannot be read, and a thread stands in that
  std::atomic<int> signal_ = 0;
  std::mutex mutex_;
  absl::Time allowed_ = absl::InfinitePast();  // until when it may clean up
  std::function<void(const absl::Status&)> cancel_;
  std::function<bool(Wish)> wish_;
  std::mutex last_words_mutex_;
  std::function<void(const absl::Status&, int)> last_words_;
  absl::Duration grace_ = absl::Seconds(25);
  absl::Status reason_;  // why the process is to end, and how soon
  int seconds_ = 0;
  std::string prefix_ = "ftexec: ";
  std::atomic<bool> ended_as_wished_ = false;

  // Of the thread alone.
  int saving_for_ = 0;       // the signal by which the process ends when it has not saved in time; 0: none
  bool terminated_ = false;  // a SIGTERM is among the wishes
  absl::Time save_until_ = absl::InfiniteFuture();
  std::thread thread_;
};

}  // namespace ft
