// The connections of the monitor at work: a thread that listens on them, the verdict, and the sending of what
// else travels on them (agreement.h, wishes.h, step_times.h).
#pragma once

#include <poll.h>

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "runtime/collective/liveness/channel.h"
#include "runtime/collective/liveness/complaints.h"
#include "runtime/collective/net/socket.h"
#include "runtime/collective/rendezvous/rendezvous.h"

namespace ft {

// Of whom a verdict speaks.
struct BlamedRank {
  int rank = 0;
  bool lost = false;  // else it failed, and said so
};

// Whom `message` blames, if it is a verdict: "rank 3 was lost (...)", "rank 2 failed: ...".
std::optional<BlamedRank> BlamedBy(std::string_view message);

class PeerLinks {
 public:
  // Told of every message of rank `rank`, and of its end as a kGoodbye or a verdict, from the thread that
  // listens and with mutex() held: it may send, and must not block.
  using Listener = std::function<void(size_t rank, PeerMessageType type, absl::string_view text)>;

  // `connections` as of ConnectStar, `wake` an eventfd; both empty for a single rank.
  PeerLinks(const Rendezvous& rendezvous, std::vector<Fd> connections, Fd wake, Listener listener);
  ~PeerLinks() { StopListening(); }

  // For a single rank there is nothing to listen to. Errors: StartThread's.
  absl::Status StartListening();
  // Closes the connections. Without a Goodbye before, this is a failure without a message for the other
  // ranks. Does nothing the second time.
  void StopListening();

  size_t rank() const { return rank_; }
  size_t world_size() const { return world_size_; }

  // As of PeerMonitor.
  void OnLoss(std::function<void(const absl::Status&)> on_loss);
  absl::Status status() const;
  absl::Status Explain(const absl::Status& error, absl::Duration patience);
  void Fail(absl::string_view message);
  absl::Status Goodbye(absl::Duration patience);
  void Cancel(const absl::Status& reason);

  // Guards what listeners keep, as well as the connections.
  absl::Mutex& mutex() const ABSL_LOCK_RETURNED(mutex_) { return mutex_; }

  // Whether waiting for other ranks has become pointless, and why: a verdict, Cancel, or this rank leaves.
  bool over() const ABSL_SHARED_LOCKS_REQUIRED(mutex_);
  absl::Status WhyOver() const ABSL_SHARED_LOCKS_REQUIRED(mutex_);

  // Whether `rank` has said goodbye.
  bool Left(size_t rank) const ABSL_SHARED_LOCKS_REQUIRED(mutex_) { return links_[rank].goodbye; }

  // To rank 0, or from there to any rank. They send what can be sent at once, and leave the rest to the
  // thread. TrySend allocates nothing and does nothing where too much waits already.
  void Send(size_t rank, PeerMessageType type, absl::string_view text) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void TrySend(size_t rank, PeerMessageType type, absl::string_view text)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void SendText(size_t rank, absl::string_view head, std::shared_ptr<const std::string> text)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // What of texts has not left yet will not.
  void DropTexts() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

 private:
  struct Link {
    Channel channel;
    bool goodbye = false;  // said by the other side
  };

  void Wake() const;
  void Run();
  int MillisecondsToWait() const ABSL_SHARED_LOCKS_REQUIRED(mutex_);
  bool FinishAll() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Hear(size_t rank) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void HearOne(size_t rank, PeerMessageType type, absl::string_view text)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Complain(const absl::Status& error) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void TakeComplaint(size_t rank, Complaint complaint) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Judge() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool IsOwn(absl::string_view verdict) const ABSL_SHARED_LOCKS_REQUIRED(mutex_);
  absl::Status WithoutAnswer(const absl::Status& error, absl::Duration patience) const
      ABSL_SHARED_LOCKS_REQUIRED(mutex_);
  void Decide(const std::string& text) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Broadcast(const std::string& text) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Push(Channel& channel) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Report() ABSL_EXCLUSIVE_LOCKS_REQUIRED(callback_mutex_);
  void AwaitFlushed(absl::Duration patience) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool AllFlushed() const;
  bool AllSaidGoodbyeOrLost() const;

  const size_t rank_;
  const size_t world_size_;
  const std::vector<PeerInfo> peers_;
  const Fd wake_;
  const Listener listener_;

  mutable absl::Mutex mutex_;
  std::vector<Link> links_;  // by rank; on rank 0 all others, elsewhere only [0]
  absl::Status verdict_;
  absl::Status cancelled_;   // of this rank's own waiting
  bool leaving_ = false;     // said Goodbye or Fail: nothing concerns this rank any more
  bool complained_ = false;  // what it complained of may become the verdict, which is then as if by Fail
  bool last_words_ = false;  // sent a message that the others must get before this rank goes
  absl::Time stopping_ = absl::InfiniteFuture();
  Complaints complaints_;                        // of all ranks, on rank 0
  absl::Time judging_ = absl::InfiniteFuture();  // when there will be a verdict on them at the latest

  absl::Mutex callback_mutex_;  // taken before mutex_
  std::function<void(const absl::Status&)> on_loss_;

  // Of the thread: what it polls, and the rank of each but the first. Allocated before it runs.
  std::vector<pollfd> entries_;
  std::vector<size_t> polled_;
  std::thread thread_;
};

}  // namespace ft
