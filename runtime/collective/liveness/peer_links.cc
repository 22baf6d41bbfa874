#include "runtime/collective/liveness/peer_links.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <system_error>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "absl/time/clock.h"
#include "runtime/base/status_macros.h"
#include "runtime/base/thread.h"
#include "runtime/collective/missing_ranks.h"

namespace ft {
namespace {

// How long the end of a monitor may take to get its last words out.
constexpr absl::Duration kLastWords = absl::Milliseconds(500);

// How long rank 0 waits for more complaints after the first one: the ranks that are held up by one rank came
// to where they waited for it, and have seen that its time is over, within that.
constexpr absl::Duration kForComplaints = absl::Seconds(2);

// Errors by which the kernel says that a host does not answer any more. A process that ends while its host is
// well closes its connections, or has them reset.
bool IsSilence(int error) {
  return error == ETIMEDOUT || error == EHOSTUNREACH || error == ENETUNREACH || error == EHOSTDOWN ||
         error == ENETDOWN;
}

// What BlamedBy knows verdicts by, after the rank.
constexpr char kLost[] = " was lost (";
constexpr char kFailed[] = " failed: ";

std::string LostText(const PeerInfo& peer, int error) {
  if (IsSilence(error)) {
    return absl::StrCat(
        "rank ", peer.rank, kLost, "nothing is heard from its host any more, ", Whereabouts(peer), ": ",
        std::generic_category().message(error),
        "; its process may still run: look at the network between the hosts, and at that host)");
  }
  return absl::StrCat("rank ", peer.rank, kLost, "its process, ", Whereabouts(peer),
                      ", ended without a word)");
}

std::string FailedText(size_t rank, absl::string_view message) {
  return absl::StrCat("rank ", rank, kFailed, message);
}

}  // namespace

std::optional<BlamedRank> BlamedBy(std::string_view message) {
  absl::string_view rest(message.data(), message.size());
  if (!absl::ConsumePrefix(&rest, "rank ")) return std::nullopt;
  BlamedRank blamed;
  const size_t digits = rest.find(' ');
  if (digits == absl::string_view::npos || !absl::SimpleAtoi(rest.substr(0, digits), &blamed.rank))
    return std::nullopt;
  rest.remove_prefix(digits);
  blamed.lost = absl::StartsWith(rest, kLost);
  if (!blamed.lost && !absl::StartsWith(rest, kFailed)) return std::nullopt;
  return blamed;
}

PeerLinks::PeerLinks(const Rendezvous& rendezvous, std::vector<Fd> connections, Fd wake, Listener listener)
    : rank_(static_cast<size_t>(rendezvous.rank())),
      world_size_(static_cast<size_t>(rendezvous.world_size())),
      peers_(rendezvous.peers()),
      wake_(std::move(wake)),
      listener_(std::move(listener)),
      links_(connections.size()),
      complaints_(world_size_) {
  for (size_t rank = 0; rank < connections.size(); ++rank)
    links_[rank].channel = Channel(std::move(connections[rank]));
}

absl::Status PeerLinks::StartListening() {
  if (world_size_ <= 1) return absl::OkStatus();
  entries_.reserve(links_.size() + 1);
  polled_.reserve(links_.size());
  FT_ASSIGN_OR_RETURN(thread_, StartThread("to watch the other ranks", [this] { Run(); }));
  return absl::OkStatus();
}

void PeerLinks::StopListening() {
  if (!thread_.joinable()) return;
  {
    absl::MutexLock lock(&mutex_);
    stopping_ = absl::Now() + kLastWords;
  }
  Wake();
  thread_.join();
}

void PeerLinks::OnLoss(std::function<void(const absl::Status&)> on_loss) {
  absl::MutexLock callback_lock(&callback_mutex_);
  on_loss_ = std::move(on_loss);
  Report();
}

absl::Status PeerLinks::status() const {
  absl::MutexLock lock(&mutex_);
  return verdict_;
}

absl::Status PeerLinks::Explain(const absl::Status& error, absl::Duration patience) {
  absl::MutexLock lock(&mutex_);
  if (error.ok() || !verdict_.ok() || leaving_) return error.ok() || verdict_.ok() ? error : verdict_;
  if (!absl::IsUnavailable(error) || !thread_.joinable()) return error;
  Complain(error);
  const auto settled = [this] { return !verdict_.ok() || leaving_; };
  mutex_.AwaitWithTimeout(absl::Condition(&settled), patience);
  if (!verdict_.ok()) return verdict_;
  return leaving_ ? error : WithoutAnswer(error, patience);
}

void PeerLinks::Complain(const absl::Status& error) {
  Complaint complaint{MissingRanks(error), std::string(error.message())};
  complained_ = true;
  if (rank_ > 0) return Send(0, PeerMessageType::kComplaint, ComplaintText(complaint));
  TakeComplaint(0, std::move(complaint));
  Wake();
}

// Rank 0 answers every complaint, whatever else it is doing, unless its process does not run. Then it is the
// one to look for, or this rank is cut off from it.
absl::Status PeerLinks::WithoutAnswer(const absl::Status& error, absl::Duration patience) const {
  const std::vector<int> missing = MissingRanks(error);
  const bool named = std::find(missing.begin(), missing.end(), 0) != missing.end();
  if (rank_ == 0 || named || links_[0].goodbye) return error;
  return WithWords(
      error, absl::StrCat(error.message(), "; rank 0 (", Whereabouts(peers_[0]), ") does not answer, asked ",
                          absl::FormatDuration(patience), " ago whom the other ranks wait for"));
}

void PeerLinks::Fail(absl::string_view message) {
  absl::MutexLock lock(&mutex_);
  if (!verdict_.ok() || leaving_ || world_size_ <= 1) return;
  leaving_ = last_words_ = true;
  DropTexts();
  if (rank_ == 0) {
    Broadcast(FailedText(0, message));
  } else {
    links_[0].channel.Queue(PeerMessageType::kFailed, message);
  }
  AwaitFlushed(kLastWords);
}

absl::Status PeerLinks::Goodbye(absl::Duration patience) {
  absl::MutexLock lock(&mutex_);
  if (leaving_ || !thread_.joinable()) return verdict_;
  if (rank_ > 0) {
    leaving_ = true;
    links_[0].channel.Queue(PeerMessageType::kGoodbye, "");
    AwaitFlushed(patience);
    return verdict_;
  }
  mutex_.AwaitWithTimeout(absl::Condition(this, &PeerLinks::AllSaidGoodbyeOrLost), patience);
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

void PeerLinks::Cancel(const absl::Status& reason) {
  absl::MutexLock lock(&mutex_);
  if (!cancelled_.ok()) return;
  cancelled_ = reason;
}

bool PeerLinks::over() const { return !verdict_.ok() || !cancelled_.ok() || leaving_; }

absl::Status PeerLinks::WhyOver() const {
  if (!verdict_.ok()) return verdict_;
  if (!cancelled_.ok()) return cancelled_;
  return leaving_ ? absl::CancelledError("this rank is ending") : absl::OkStatus();
}

void PeerLinks::Send(size_t rank, PeerMessageType type, absl::string_view text) {
  links_[rank].channel.Queue(type, text);
  Push(links_[rank].channel);
}

void PeerLinks::TrySend(size_t rank, PeerMessageType type, absl::string_view text) {
  if (links_[rank].channel.QueueIfRoom(type, text)) Push(links_[rank].channel);
}

void PeerLinks::SendText(size_t rank, absl::string_view head, std::shared_ptr<const std::string> text) {
  links_[rank].channel.QueueText(head, std::move(text));
  Push(links_[rank].channel);
}

void PeerLinks::DropTexts() {
  for (Link& link : links_) link.channel.DropTexts();
}

// Saves the thread's way, and that of the message through it.
void PeerLinks::Push(Channel& channel) {
  channel.Flush();
  if (channel.WantsToSend()) Wake();
}

void PeerLinks::Wake() const {
  const uint64_t one = 1;
  [[maybe_unused]] const ssize_t written = write(wake_.get(), &one, sizeof(one));
}

void PeerLinks::Run() {
  for (;;) {
    int wait = 0;
    {
      absl::MutexLock lock(&mutex_);
      if (stopping_ != absl::InfiniteFuture()) {
        if (absl::Now() >= stopping_ || !FinishAll()) return;
      }
      wait = MillisecondsToWait();
      entries_.assign({{wake_.get(), POLLIN, 0}});
      polled_.clear();
      for (size_t rank = 0; rank < links_.size(); ++rank) {
        const Channel& channel = links_[rank].channel;
        if (!channel.open()) continue;
        entries_.push_back(
            {channel.fd(), static_cast<short>(channel.WantsToSend() ? POLLIN | POLLOUT : POLLIN), 0});
        polled_.push_back(rank);
      }
    }
    poll(entries_.data(), entries_.size(), wait);
    uint64_t wakes = 0;
    if (entries_[0].revents != 0) [[maybe_unused]]
      const ssize_t got = read(wake_.get(), &wakes, sizeof(wakes));
    {
      absl::MutexLock lock(&mutex_);
      for (size_t i = 0; i < polled_.size(); ++i) {
        if (entries_[i + 1].revents & (POLLIN | POLLHUP | POLLERR)) Hear(polled_[i]);
      }
      Judge();
      for (Link& link : links_) link.channel.Flush();
    }
    absl::MutexLock callback_lock(&callback_mutex_);
    Report();
  }
}

// For messages, as poll takes it.
int PeerLinks::MillisecondsToWait() const {
  const absl::Time until = std::min(stopping_, judging_);
  return until == absl::InfiniteFuture() ? -1 : PollMilliseconds(until);
}

// Ends the connections in an orderly way; returns whether some still have to be waited for.
bool PeerLinks::FinishAll() {
  bool waiting = false;
  for (Link& link : links_) {
    link.channel.DropTexts();
    link.channel.Flush();
    if (link.channel.open() && !link.channel.HasUnsent()) link.channel.FinishSending();
    waiting |= link.channel.HasUnsent();
    // Closing with unread words of the other side would destroy our own on their way: let it close first.
    waiting |= link.channel.open() && last_words_;
  }
  return waiting;
}

void PeerLinks::Hear(size_t rank) {
  Link& link = links_[rank];
  link.channel.Read([&](PeerMessageType type, absl::string_view text) { HearOne(rank, type, text); });
  if (!link.channel.open() && !link.goodbye) Decide(LostText(peers_[rank], link.channel.error()));
}

void PeerLinks::HearOne(size_t rank, PeerMessageType type, absl::string_view text) {
  if (type == PeerMessageType::kGoodbye) links_[rank].goodbye = true;
  if (type == PeerMessageType::kFailed && rank_ == 0) Decide(FailedText(rank, text));
  if (type == PeerMessageType::kComplaint && rank_ == 0) {
    std::optional<Complaint> complaint = ParseComplaint(text, world_size_);
    if (complaint.has_value()) TakeComplaint(rank, *std::move(complaint));
  }
  if (type == PeerMessageType::kVerdict && rank_ > 0) {
    if (IsOwn(text)) leaving_ = true;
    Decide(std::string(text));
  }
  listener_(rank, type, text);
}

void PeerLinks::TakeComplaint(size_t rank, Complaint complaint) {
  if (!verdict_.ok() || leaving_) return;
  if (complaints_.empty()) judging_ = absl::Now() + kForComplaints;
  complaints_.Add(rank, std::move(complaint));
}

// Makes a verdict of the complaints as soon as no other one could change it.
void PeerLinks::Judge() {
  if (judging_ == absl::InfiniteFuture() || (!complaints_.Complete() && absl::Now() < judging_)) return;
  judging_ = absl::InfiniteFuture();
  if (!verdict_.ok() || leaving_) return;
  const size_t chosen = complaints_.Chosen();
  const std::string text = FailedText(chosen, complaints_.WordsOf(chosen));
  if (chosen > 0) return Decide(text);
  leaving_ = last_words_ = true;
  Broadcast(text);
}

// Whether a verdict says what this rank complained of.
bool PeerLinks::IsOwn(absl::string_view verdict) const {
  const std::optional<BlamedRank> blamed = BlamedBy(std::string_view(verdict.data(), verdict.size()));
  return complained_ && blamed.has_value() && !blamed->lost && blamed->rank == static_cast<int>(rank_);
}

// The first verdict counts; what follows are its consequences.
void PeerLinks::Decide(const std::string& text) {
  if (!verdict_.ok() || leaving_) return;
  verdict_ = absl::UnavailableError(text);
  last_words_ = rank_ == 0;
  if (rank_ == 0) Broadcast(text);
}

void PeerLinks::Broadcast(const std::string& text) {
  for (Link& link : links_) {
    if (!link.channel.open()) continue;
    link.channel.DropTexts();
    link.channel.Queue(PeerMessageType::kVerdict, text);
  }
}

void PeerLinks::Report() {
  absl::Status verdict;
  {
    absl::MutexLock lock(&mutex_);
    if (!leaving_) verdict = verdict_;
  }
  if (verdict.ok() || !on_loss_) return;
  std::exchange(on_loss_, nullptr)(verdict);
}

void PeerLinks::AwaitFlushed(absl::Duration patience) {
  Wake();
  mutex_.AwaitWithTimeout(absl::Condition(this, &PeerLinks::AllFlushed), patience);
}

bool PeerLinks::AllFlushed() const {
  return std::none_of(links_.begin(), links_.end(),
                      [](const Link& link) { return link.channel.HasUnsent(); });
}

bool PeerLinks::AllSaidGoodbyeOrLost() const {
  return !verdict_.ok() ||
         std::all_of(links_.begin() + 1, links_.end(), [](const Link& link) { return link.goodbye; });
}

}  // namespace ft
