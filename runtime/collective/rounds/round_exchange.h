// What a transport does for a collective: rounds in which every rank leaves data for the others and takes
// theirs.
//
// A round: fill Outbox or SharedOutbox, Announce, Await each peer and read its Inbox, Finish. All ranks take
// part in all rounds, with nothing to say, perhaps. A transport remembers its first error and fails with it
// from then on.
#pragma once

#include <cstddef>
#include <cstdint>

#include "absl/status/status.h"

namespace ft {

// What a rank says it is doing in a round; all ranks have to do the same.
struct RoundHeader {
  uint32_t operation = 0;
  uint32_t argument = 0;  // dtype or root
  uint64_t bytes = 0;     // of the whole collective
  uint64_t sequence = 0;  // of the collective, counted by the communicator
  char name[104] = "";
};
static_assert(sizeof(RoundHeader) == 128);

class RoundExchange {
 public:
  virtual ~RoundExchange() = default;

  virtual int rank() const = 0;
  virtual int size() const = 0;  // 2 or more

  // Bytes that fit in one round when all others get the same, and when each gets its own. Multiples of 64.
  virtual size_t shared_capacity() const = 0;
  virtual size_t piece_capacity() const = 0;

  // Where to put what all others get, or what `reader` gets, before Announce.
  virtual std::byte* SharedOutbox() = 0;
  virtual std::byte* Outbox(int reader) = 0;

  // Starts a round: `bytes` of the shared outbox go to all others, or up to `bytes` of each outbox go to its
  // reader.
  virtual absl::Status AnnounceShared(const RoundHeader& header, size_t bytes) = 0;
  virtual absl::Status AnnouncePieces(const RoundHeader& header, size_t bytes) = 0;

  // Waits for what `peer` left in this round. Errors: the reason of an abort, Unavailable at the time-out,
  // naming who is missing, Internal when `peer` is in another collective.
  virtual absl::Status Await(int peer) = 0;
  // What `writer` left for this rank; readable from Await until Finish.
  virtual const std::byte* Inbox(int writer) const = 0;
  // Ends the round: this rank has read all it wants.
  virtual absl::Status Finish() = 0;

  virtual absl::Status status() const = 0;
  virtual void Abort(absl::Status reason) = 0;  // from any thread
  virtual size_t staging_bytes() const = 0;
};

}  // namespace ft
