#include "runtime/collective/liveness/peer_monitor.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <string>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/clock.h"
#include "runtime/base/status_macros.h"
#include "runtime/base/thread.h"
#include "runtime/collective/liveness/channel.h"
#include "runtime/collective/liveness/star.h"

namespace ft {
namespace {

// How long the end of a monitor may take to get its last words out.
constexpr absl::Duration kLastWords = absl::Milliseconds(500);

// Errors by which the kernel says that a host does not answer any more. A process that ends while its host is
// well closes its connections, or has them reset.
bool IsSilence(int error) {
  return error == ETIMEDOUT || error == EHOSTUNREACH || error == ENETUNREACH || error == EHOSTDOWN ||
         error == ENETDOWN;
}

std::string LostText(const PeerInfo& peer, int error) {
  if (IsSilence(error)) {
    return absl::StrCat(
        "rank ", peer.rank, " was lost (nothing is heard from its host any more, ", Whereabouts(peer), ": ",
        std::generic_category().message(error),
        "; its process may still run: look at the network between the hosts, and at that host)");
  }
  return absl::StrCat("rank ", peer.rank, " was lost (its process, ", Whereabouts(peer),
                      ", ended without a word)");
}

}  // namespace

class PeerMonitor::Impl {
 public:
  Impl(const Rendezvous& rendezvous, std::vector<Fd> connections, Fd wake)
      : rank_(rendezvous.rank()),
        peers_(rendezvous.peers()),
        wake_(std::move(wake)),
        links_(connections.size()) {
    for (size_t rank = 0; rank < connections.size(); ++rank)
      links_[rank].channel = Channel(std::move(connections[rank]));
  }

  absl::Status StartListening() {
    if (peers_.size() <= 1) return absl::OkStatus();
    FT_ASSIGN_OR_RETURN(thread_, StartThread("to watch the other ranks", [this] { Run(); }));
    return absl::OkStatus();
  }

  ~Impl() {
    if (!thread_.joinable()) return;
    {
      absl::MutexLock lock(&mutex_);
      stopping_ = absl::Now() + kLastWords;
    }
    Wake();
    thread_.join();
  }

  void OnLoss(std::function<void(const absl::Status&)> on_loss) {
    absl::MutexLock callback_lock(&callback_mutex_);
    on_loss_ = std::move(on_loss);
    Report();
  }

  absl::Status status() const {
    absl::MutexLock lock(&mutex_);
    return verdict_;
  }

  absl::Status Explain(const absl::Status& error, absl::Duration patience) const {
    absl::MutexLock lock(&mutex_);
    if (absl::IsUnavailable(error) && thread_.joinable()) {
      mutex_.AwaitWithTimeout(
          absl::Condition(+[](const absl::Status* verdict) { return !verdict->ok(); }, &verdict_), patience);
    }
    return error.ok() || verdict_.ok() ? error : verdict_;
  }

  void Fail(std::string_view message) {
    const absl::string_view text(message.data(), message.size());
    absl::MutexLock lock(&mutex_);
    if (!verdict_.ok() || leaving_) return;
    leaving_ = last_words_ = true;
    if (rank_ == 0) {
      Broadcast(FailedText(0, text));
    } else {
      links_[0].channel.Queue(PeerMessageType::kFailed, text);
    }
    AwaitFlushed(kLastWords);
  }

  absl::Status Goodbye(absl::Duration patience) {
    absl::MutexLock lock(&mutex_);
    if (leaving_ || !thread_.joinable()) return verdict_;
    if (rank_ > 0) {
      leaving_ = true;
      links_[0].channel.Queue(PeerMessageType::kGoodbye, "");
      AwaitFlushed(patience);
      return verdict_;
    }
    mutex_.AwaitWithTimeout(absl::Condition(this, &Impl::AllSaidGoodbyeOrLost), patience);
    leaving_ = true;
    if (!verdict_.ok()) return verdict_;
    std::vector<size_t> silent;
    for (size_t rank = 1; rank < links_.size(); ++rank) {
      if (!links_[rank].goodbye) silent.push_back(rank);
      links_[rank].channel.Queue(PeerMessageType::kGoodbye, "");
    }
    AwaitFlushed(kLastWords);
    if (silent.empty()) return absl::OkStatus();
    return absl::UnavailableError(absl::StrCat("rank ", absl::StrJoin(silent, ", "), " did not end within ",
                                               absl::FormatDuration(patience), " of rank 0"));
  }

 private:
  struct Link {
    Channel channel;
    bool goodbye = false;  // said by the other side
  };

  void Wake() const {
    const uint64_t one = 1;
    [[maybe_unused]] const ssize_t written = write(wake_.get(), &one, sizeof(one));
  }

  void Run() {
    std::vector<pollfd> entries;
    std::vector<size_t> ranks;
    for (;;) {
      int wait = -1;
      {
        absl::MutexLock lock(&mutex_);
        if (stopping_ != absl::InfiniteFuture()) {
          if (absl::Now() >= stopping_ || !FinishAll()) return;
          wait = PollMilliseconds(stopping_);
        }
        entries.assign({{wake_.get(), POLLIN, 0}});
        ranks.clear();
        for (size_t rank = 0; rank < links_.size(); ++rank) {
          const Channel& channel = links_[rank].channel;
          if (!channel.open()) continue;
          entries.push_back(
              {channel.fd(), static_cast<short>(channel.HasUnsent() ? POLLIN | POLLOUT : POLLIN), 0});
          ranks.push_back(rank);
        }
      }
      poll(entries.data(), entries.size(), wait);
      uint64_t wakes = 0;
      if (entries[0].revents != 0) [[maybe_unused]]
        const ssize_t got = read(wake_.get(), &wakes, sizeof(wakes));
      {
        absl::MutexLock lock(&mutex_);
        for (size_t i = 0; i < ranks.size(); ++i) {
          if (entries[i + 1].revents & (POLLIN | POLLHUP | POLLERR)) Hear(ranks[i]);
        }
        for (Link& link : links_) link.channel.Flush();
      }
      absl::MutexLock callback_lock(&callback_mutex_);
      Report();
    }
  }

  // Ends the connections in an orderly way; returns whether some still have to be waited for.
  bool FinishAll() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    bool waiting = false;
    for (Link& link : links_) {
      link.channel.Flush();
      if (link.channel.open() && !link.channel.HasUnsent()) link.channel.FinishSending();
      waiting |= link.channel.HasUnsent();
      // Closing with unread words of the other side would destroy our own on their way: let it close first.
      waiting |= link.channel.open() && last_words_;
    }
    return waiting;
  }

  void Hear(size_t rank) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    Link& link = links_[rank];
    for (const PeerMessage& message : link.channel.Read()) {
      switch (message.type) {
        case PeerMessageType::kGoodbye:
          link.goodbye = true;
          break;
        case PeerMessageType::kFailed:
          if (rank_ == 0) Decide(FailedText(rank, message.text));
          break;
        case PeerMessageType::kVerdict:
          if (rank_ > 0) Decide(message.text);
          break;
      }
    }
    if (!link.channel.open() && !link.goodbye) Decide(LostText(peers_[rank], link.channel.error()));
  }

  std::string FailedText(size_t rank, absl::string_view message) const {
    return absl::StrCat("rank ", rank, " failed: ", message);
  }

  // The first verdict counts; what follows are its consequences.
  void Decide(const std::string& text) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    if (!verdict_.ok() || leaving_) return;
    verdict_ = absl::UnavailableError(text);
    last_words_ = rank_ == 0;
    if (rank_ == 0) Broadcast(text);
  }

  void Broadcast(const std::string& text) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    for (Link& link : links_) {
      if (link.channel.open()) link.channel.Queue(PeerMessageType::kVerdict, text);
    }
  }

  void Report() ABSL_EXCLUSIVE_LOCKS_REQUIRED(callback_mutex_) {
    absl::Status verdict;
    {
      absl::MutexLock lock(&mutex_);
      if (!leaving_) verdict = verdict_;
    }
    if (verdict.ok() || !on_loss_) return;
    std::exchange(on_loss_, nullptr)(verdict);
  }

  void AwaitFlushed(absl::Duration patience) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    Wake();
    mutex_.AwaitWithTimeout(absl::Condition(this, &Impl::AllFlushed), patience);
  }
  bool AllFlushed() const {
    return std::none_of(links_.begin(), links_.end(),
                        [](const Link& link) { return link.channel.HasUnsent(); });
  }
  bool AllSaidGoodbyeOrLost() const {
    return !verdict_.ok() ||
           std::all_of(links_.begin() + 1, links_.end(), [](const Link& link) { return link.goodbye; });
  }

  const int rank_;
  const std::vector<PeerInfo> peers_;
  const Fd wake_;

  mutable absl::Mutex mutex_;
  std::vector<Link> links_;  // by rank; on rank 0 all others, elsewhere only [0]
  absl::Status verdict_;
  bool leaving_ = false;     // said Goodbye or Fail: nothing concerns this rank any more
  bool last_words_ = false;  // sent a message that the others must get before this rank goes
  absl::Time stopping_ = absl::InfiniteFuture();

  absl::Mutex callback_mutex_;  // taken before mutex_
  std::function<void(const absl::Status&)> on_loss_;

  std::thread thread_;
};

absl::StatusOr<std::unique_ptr<PeerMonitor>> PeerMonitor::Start(const Rendezvous& rendezvous) {
  std::vector<Fd> connections;
  Fd wake;
  if (rendezvous.world_size() > 1) {
    FT_ASSIGN_OR_RETURN(connections, ConnectStar(rendezvous));
    wake = Fd(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
    if (!wake.valid()) return ErrnoStatus("eventfd");
  }
  auto impl = std::make_unique<Impl>(rendezvous, std::move(connections), std::move(wake));
  FT_RETURN_IF_ERROR(impl->StartListening());
  return std::unique_ptr<PeerMonitor>(new PeerMonitor(std::move(impl)));
}

PeerMonitor::PeerMonitor(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
PeerMonitor::~PeerMonitor() = default;
void PeerMonitor::OnLoss(std::function<void(const absl::Status&)> on_loss) {
  impl_->OnLoss(std::move(on_loss));
}
absl::Status PeerMonitor::status() const { return impl_->status(); }
absl::Status PeerMonitor::Explain(const absl::Status& error, absl::Duration patience) const {
  return impl_->Explain(error, patience);
}
void PeerMonitor::Fail(std::string_view message) { impl_->Fail(message); }
absl::Status PeerMonitor::Goodbye(absl::Duration patience) { return impl_->Goodbye(patience); }

}  // namespace ft
