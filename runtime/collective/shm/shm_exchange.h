// Rounds of an exchange through shared memory.
//
// Each rank has a control page and two slots for data. In round k a rank writes slot k % 2, announces k, and
// waits for all others to announce k; then all slots k % 2 are full and may be read. One announcement per
// round is enough: who announces k has read what it wanted of round k - 1, so once all have announced k the
// slots of k - 1 may be overwritten, in round k + 1.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "runtime/base/first_failure.h"
#include "runtime/collective/rounds/round_exchange.h"
#include "runtime/collective/shm/shared_segment.h"

namespace ft {

class ShmExchange : public RoundExchange {
 public:
  struct Options {
    int rank = 0;
    int size = 1;
    absl::Duration timeout;
    absl::Duration spin;               // how long a wait may spin before it sleeps
    std::vector<std::string> members;  // by rank, for messages: "rank 6 (pid 17 on node-a)"
  };

  static size_t SegmentBytes(int size);

  // The segment is zero-filled and of SegmentBytes.
  ShmExchange(SharedSegment segment, Options options);

  int rank() const override { return options_.rank; }
  int size() const override { return options_.size; }
  size_t shared_capacity() const override;
  size_t piece_capacity() const override;
  std::byte* SharedOutbox() override { return Slot(options_.rank, round_ + 1); }
  std::byte* Outbox(int reader) override;
  absl::Status AnnounceShared(const RoundHeader& header, size_t bytes) override {
    return Announce(header, false);
  }
  absl::Status AnnouncePieces(const RoundHeader& header, size_t bytes) override {
    return Announce(header, true);
  }
  absl::Status Await(int peer) override;
  const std::byte* Inbox(int writer) const override;
  absl::Status Finish() override { return absl::OkStatus(); }  // the next announcement says so
  absl::Status status() const override { return state_.status(); }
  void Abort(absl::Status reason) override;
  size_t staging_bytes() const override;

 private:
  struct Control;

  Control* ControlOf(int rank) const;
  std::byte* Slot(int rank, uint32_t round) const;
  // In a slot, the pieces for all ranks but the writer lie one behind the other.
  size_t PieceOffset(int writer, int reader) const;
  absl::Status Announce(const RoundHeader& header, bool pieces);
  bool HasAnnounced(int peer) const;
  absl::Status SleepUntilAnnounced(int peer);
  absl::Status TimedOut();

  const SharedSegment segment_;
  const Options options_;
  uint32_t round_ = 0;   // wraps; only differences count
  bool pieces_ = false;  // what this round exchanges
  FirstFailure state_;
};

}  // namespace ft
