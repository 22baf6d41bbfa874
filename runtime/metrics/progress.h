// The progress line of a training run.
#pragma once

#include <cstdint>
#include <string_view>

#include "absl/status/statusor.h"
#include "runtime/metrics/step_metrics.h"

namespace ft {

// --progress=auto|on|off.
//   kAuto  one line that updates in place on a terminal, plain lines elsewhere
//   kOn    the updating line, terminal or not
//   kOff   nothing
enum class ProgressMode { kAuto, kOn, kOff };

// InvalidArgument for any other word.
absl::StatusOr<ProgressMode> ParseProgressMode(std::string_view word);

// Writes to a file descriptor what a person wants to see of each step, in fewer than 100 columns on a
// terminal: steps done / total, loss, gradient norm, learning rate, tokens/s, step time, time left; then, as
// far as known and there is room, MFU, exposed communication, utilisation. On a terminal it repaints at
// most 10 times a second; elsewhere a line is written for the first step, then at most one a second, and for
// the last step. One thread at a time. Nothing is allocated by Update(). A descriptor that cannot be written
// to is ignored: progress is no reason to stop (a program that may lose its reader ignores SIGPIPE, though).
class Progress {
 public:
  // Seconds from any fixed origin; tests give their own.
  using Clock = double (*)();

  // total_steps counts those of the whole run; a resumed one starts with a later step. `clock` null: the
  // monotonic clock.
  Progress(int fd, ProgressMode mode, int64_t total_steps, Clock clock = nullptr);
  ~Progress();  // as Finish()
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  // After each step.
  void Update(const StepMetrics& metrics);

  // After an evaluation: a line of its own, which stays.
  void ShowEvaluation(const EvaluationMetrics& metrics);

  // Ends the updating line with a newline (after showing the newest step), so that other output starts on a
  // fresh one. To be called before anything else is printed to the same terminal; Update() may follow.
  void Finish();

  // errno of the first write that failed; 0: none. What follows is lost, too: for logs, which are no mere
  // show.
  int write_error() const { return write_error_; }

 private:
  enum class Style { kNone, kInPlace, kLines };
  void Show(double now);
  void Write(std::string_view text);
  double SecondsLeft(double now) const;

  int fd_;
  Style style_;
  int64_t total_;
  Clock clock_;
  bool any_ = false;        // a step was seen
  bool pending_ = false;    // the newest step is not shown yet
  bool line_open_ = false;  // the cursor is on an unfinished line
  double shown_at_ = 0;
  int write_error_ = 0;
  int64_t first_step_ = 0;
  double first_done_at_ = 0;  // when first_step_ was done; the time left is reckoned from there
  StepMetrics newest_;
};

}  // namespace ft
