// Every rank learns within a fraction of a second when another rank's process ends without a word.
//
// A star of TCP connections through rank 0. A connection that closes with no goodbye is a lost rank; rank 0
// tells all others. When rank 0 itself is lost, every rank sees its own connection close. There is no
// heartbeat: a stopped or busy process is not lost.
//
// On the same connections, beside the collectives of a run, ranks agree on texts, wish for checkpoints and
// say how long their steps took.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "runtime/collective/liveness/agreement.h"
#include "runtime/collective/liveness/step_times.h"
#include "runtime/collective/liveness/wishes.h"
#include "runtime/collective/rendezvous/rendezvous.h"

namespace ft {

class PeerMonitor {
 public:
  // Connects to all ranks; every rank has to call it. One thread per process runs until Goodbye or
  // destruction. With a single rank there is nothing to watch: no thread, no socket.
  static absl::StatusOr<std::unique_ptr<PeerMonitor>> Start(const Rendezvous& rendezvous);

  // Without a Goodbye before, this is a failure without a message for the other ranks.
  ~PeerMonitor();

  // `on_loss` is called once, from the monitor's thread or from this call, with Unavailable("rank 3 was lost
  // (...)") or Unavailable("rank 2 failed: ..."). It must not block: it calls Communicator::Abort. An empty
  // function ends it; after OnLoss({}) returns no callback is running any more.
  void OnLoss(std::function<void(const absl::Status&)> on_loss);

  // OK while everyone is well, and the first loss afterwards.
  absl::Status status() const;

  // Which error to report of a rank that ends with `error`. Unavailable is what one gets whom other ranks
  // hold up: its time was over, or a connection broke since it was over elsewhere. Then all that are held up
  // settle with rank 0 whose error says best who is missing (complaints.h), within some two seconds, and all
  // others learn it as a failure of that one. Returns that verdict, or an earlier one, and `error` where it
  // is that one itself, or of another kind. When rank 0 does not answer within `patience`, `error` with a
  // word of that.
  absl::Status Explain(const absl::Status& error, absl::Duration patience = absl::Seconds(6));

  // Tells all other ranks that this one fails, in one line. Does nothing when a verdict was heard already:
  // this rank's failure is a consequence then.
  void Fail(std::string_view message);

  // This rank is done. Rank 0 waits until every rank has said so, for at most `patience`. Errors: Unavailable
  // when a rank was lost before it said goodbye. No callback afterwards.
  absl::Status Goodbye(absl::Duration patience = absl::Seconds(60));

  // All ranks call it for the same `topic` and `number`, each from any thread but never two at a time, also
  // while other threads train; the n-th call of a rank meets the n-th of each other. Rank 0 calls `decide`
  // once, in the calling thread, with what each rank brought (`payload`, at most Agreement::kMaxBytes), and
  // all ranks return what it returned, be it an error. With a single rank that is all.
  // Errors, beside those of `decide`: Unavailable with the verdict when a rank was lost or failed, or ended
  // with no such call; Internal when ranks call it for different things, naming both; DeadlineExceeded when a
  // rank does not call within `timeout` of rank 0's call, naming the missing ones, or when no answer came
  // within `timeout` and some seconds of this rank's own, the time of `decide` included; what Cancel was
  // given. After an error of one agreement the next ones work as if it had succeeded.
  absl::StatusOr<std::string> Agree(std::string_view topic, uint64_t number, std::string payload,
                                    Agreement::Decide decide, absl::Duration timeout);
  Agreement::Counts agreement_counts() const;

  Wishes& wishes();
  StepTimes& step_times();

  // Whatever waits for other ranks here, in Agree or Wishes::AtBoundary, returns `reason`, now and later; so
  // it does after Fail and Goodbye. Thread-safe; does not wait.
  void Cancel(const absl::Status& reason);

 private:
  class Impl;
  explicit PeerMonitor(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace ft
