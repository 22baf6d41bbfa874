// Watches the ranks of one attempt until all have ended.
#pragma once

#include <deque>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "tools/ftrun/guardian.h"
#include "tools/ftrun/output_merger.h"
#include "tools/ftrun/rank_process.h"

namespace ft::run {

struct RankEnd {
  int rank = 0;
  pid_t pid = -1;
  int wait_status = 0;  // as of waitpid
};

// "rank 3 (pid 71) exited with status 65", "... was killed by signal 9 (Killed)"
std::string Describe(const RankEnd& end);
// The exit status of ftrun for it: the rank's own, or 128 + signal.
int ExitStatusOf(const RankEnd& end);

// Of failures in the order they were seen: the first that is neither "a peer was lost" (a consequence by
// nature) nor "saved and ended" (none at all), else the first of the former, else the first.
std::optional<RankEnd> RootCause(const std::vector<RankEnd>& failures);

struct Outcome {
  std::optional<RankEnd> failure;  // the root cause; none: all ranks exited with 0
  int signal = 0;                  // that ended ftrun; 0: none
  bool as_wished = false;          // all ranks saved and ended, as a signal asked (kExitEndedAsWished)
  bool log_lost = false;           // a log could not be written to its end; was said when it happened
};

struct SupervisorOptions {
  absl::Duration grace =
      absl::Seconds(2);  // after a failure, for the others to find out and end by themselves
  absl::Duration term_grace =
      absl::Seconds(30);  // between SIGTERM, or a signal to ftrun that was passed on, and SIGKILL
};

class Supervisor {
 public:
  // `signals`: a signalfd for SIGCHLD and the signals to pass on, which the caller has blocked. Output goes
  // to `out` and `err`, before each line prefix_of(rank).
  Supervisor(SupervisorOptions options, int signals, Guardian* guardian, MergedOutput* out, MergedOutput* err,
             std::function<std::string(int rank)> prefix_of)
      : options_(options),
        signals_(signals),
        guardian_(guardian),
        out_(out),
        err_(err),
        prefix_of_(std::move(prefix_of)) {}
  // Kills and reaps what still runs.
  ~Supervisor();

  // Takes over a started rank; log_path empty: no log. One that cannot be opened is lost (see Outcome).
  void Add(RankProcess process, const std::string& log_path);
  // Returns when all ranks have ended.
  Outcome Run();

 private:
  struct Stream {
    Fd fd;
    LineSource lines;
  };
  struct Rank {
    RankProcess process;
    Fd log;
    std::string log_path;
    bool ended = false;
    std::deque<Stream> streams;
  };
  enum class Stage { kRunning, kGrace, kTerminating, kKilling };

  bool AllEnded() const;
  bool AllClosed() const;
  int PollTimeout() const;
  void ReadSignals();
  void Reap();
  void Fail(RankEnd end);
  void Escalate();
  void ReadStream(Rank* rank, Stream* stream);
  void WriteLog(Rank* rank, absl::string_view bytes);
  void LoseLog(Rank* rank, int error);
  void SignalAll(int signal);

  const SupervisorOptions options_;
  const int signals_;
  Guardian* const guardian_;
  MergedOutput* const out_;
  MergedOutput* const err_;
  const std::function<std::string(int)> prefix_of_;
  std::deque<Rank> ranks_;
  std::vector<RankEnd> failures_;  // before we began to end ranks
  int signal_ = 0;                 // that we were sent
  bool log_lost_ = false;
  bool any_as_wished_ = false;  // a rank saved and ended
  bool any_otherwise_ = false;  // one ended neither so nor with 0
  Stage stage_ = Stage::kRunning;
  absl::Time next_stage_ = absl::InfiniteFuture();
  absl::Time all_ended_at_ = absl::InfiniteFuture();
};

}  // namespace ft::run
