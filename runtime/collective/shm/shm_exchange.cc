#include "runtime/collective/shm/shm_exchange.h"

#include <algorithm>
#include <utility>

#include "absl/time/clock.h"
#include "runtime/base/status_macros.h"
#include "runtime/collective/rounds/round_messages.h"
#include "runtime/collective/shm/futex.h"

namespace ft {
namespace {

constexpr size_t kSlotBytes = size_t{512} << 10;
constexpr size_t kControlBytes = 4096;
constexpr size_t kLine = 64;
// A wake-up can be lost only to an Abort that comes between a look at the flag and the sleep; this bounds its
// delay.
constexpr absl::Duration kSleepSlice = absl::Milliseconds(100);

inline void Pause() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#endif
}

}  // namespace

struct ShmExchange::Control {
  alignas(64) std::atomic<uint32_t> announced;  // the last round
  std::atomic<uint32_t> sleepers;               // that wait for the next one
  alignas(64) RoundHeader headers[2];           // by round % 2
};
static_assert(std::atomic<uint32_t>::is_always_lock_free);

size_t ShmExchange::SegmentBytes(int size) {
  return static_cast<size_t>(size) * (kControlBytes + 2 * kSlotBytes);
}

ShmExchange::ShmExchange(SharedSegment segment, Options options)
    : segment_(std::move(segment)), options_(std::move(options)) {
  static_assert(sizeof(Control) <= kControlBytes);
}

size_t ShmExchange::shared_capacity() const { return kSlotBytes; }
size_t ShmExchange::piece_capacity() const {
  return kSlotBytes / static_cast<size_t>(options_.size - 1) / kLine * kLine;
}
size_t ShmExchange::staging_bytes() const { return SegmentBytes(1); }

ShmExchange::Control* ShmExchange::ControlOf(int rank) const {
  return reinterpret_cast<Control*>(segment_.data() + static_cast<size_t>(rank) * kControlBytes);
}

std::byte* ShmExchange::Slot(int rank, uint32_t round) const {
  const size_t slots = static_cast<size_t>(options_.size) * kControlBytes;
  return segment_.data() + slots + (static_cast<size_t>(rank) * 2 + round % 2) * kSlotBytes;
}

size_t ShmExchange::PieceOffset(int writer, int reader) const {
  return static_cast<size_t>(reader < writer ? reader : reader - 1) * piece_capacity();
}

std::byte* ShmExchange::Outbox(int reader) { return SharedOutbox() + PieceOffset(options_.rank, reader); }

const std::byte* ShmExchange::Inbox(int writer) const {
  return Slot(writer, round_) + (pieces_ ? PieceOffset(writer, options_.rank) : 0);
}

absl::Status ShmExchange::Announce(const RoundHeader& header, bool pieces) {
  Control* control = ControlOf(options_.rank);
  ++round_;
  pieces_ = pieces;
  control->headers[round_ % 2] = header;
  // Sequentially consistent, as is the sleeper's registration before its last look: one of the two sees the
  // other.
  control->announced.store(round_, std::memory_order_seq_cst);
  if (control->sleepers.load(std::memory_order_seq_cst) > 0) FutexWakeAll(&control->announced);
  return absl::OkStatus();
}

bool ShmExchange::HasAnnounced(int peer) const {
  const uint32_t announced = ControlOf(peer)->announced.load(std::memory_order_acquire);
  return static_cast<int32_t>(announced - round_) >= 0;
}

absl::Status ShmExchange::Await(int peer) {
  if (!HasAnnounced(peer) && options_.spin > absl::ZeroDuration()) {
    const absl::Time enough = absl::Now() + options_.spin;
    while (!HasAnnounced(peer) && absl::Now() < enough) Pause();
  }
  if (!HasAnnounced(peer)) FT_RETURN_IF_ERROR(SleepUntilAnnounced(peer));
  absl::Status same =
      CompareHeaders(options_.members, options_.rank, ControlOf(options_.rank)->headers[round_ % 2], peer,
                     ControlOf(peer)->headers[round_ % 2]);
  return same.ok() ? same : state_.Set(std::move(same));
}

absl::Status ShmExchange::SleepUntilAnnounced(int peer) {
  Control* control = ControlOf(peer);
  const absl::Time deadline = absl::Now() + options_.timeout;
  absl::Status status;
  control->sleepers.fetch_add(1, std::memory_order_seq_cst);
  while (status.ok()) {
    const uint32_t seen = control->announced.load(std::memory_order_seq_cst);
    if (static_cast<int32_t>(seen - round_) >= 0) break;
    status = state_.status();
    if (status.ok() && absl::Now() >= deadline) status = TimedOut();
    if (status.ok()) FutexWait(&control->announced, seen, std::min(kSleepSlice, deadline - absl::Now()));
  }
  control->sleepers.fetch_sub(1, std::memory_order_seq_cst);
  return status;
}

absl::Status ShmExchange::TimedOut() {
  std::vector<int> missing;
  for (int peer = 0; peer < options_.size; ++peer) {
    if (!HasAnnounced(peer)) missing.push_back(peer);
  }
  const RoundHeader& own = ControlOf(options_.rank)->headers[round_ % 2];
  return state_.Set(RoundTimedOut(own, options_.timeout, missing, options_.members));
}

void ShmExchange::Abort(absl::Status reason) {
  state_.Set(std::move(reason)).IgnoreError();
  for (int peer = 0; peer < options_.size; ++peer) FutexWakeAll(&ControlOf(peer)->announced);
}

}  // namespace ft
