// How the ranks of a run agree on who takes part, over a store that may still hold what an earlier run left
// there.
//
// Everyone posts notes to one numbered stream (a counter gives the number), which rank 0 reads in order:
//   follower: post "hello <nonce>"; rank 0 answers each at ack/<nonce> with its generation g, a counter it
//   raised when it came; follower: post "facts <g> ..."; when rank 0 has the facts of all ranks for its own
//   g, it sets <g>/roster.
// A note that a dead process left gets a harmless answer; facts of another generation are passed over.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "runtime/collective/rendezvous/peer_info.h"
#include "runtime/collective/rendezvous/store.h"

namespace ft {

struct Roster {
  int64_t generation = 0;
  absl::Status verdict;         // what rank 0 told all of them; OK: everyone is here and agrees
  std::vector<PeerInfo> peers;  // by rank; with an error: those that came
};

// OK when the fingerprints of all are equal. FailedPrecondition else, naming the first setting that differs.
absl::Status CompareFingerprints(const std::vector<PeerInfo>& peers);

// Rank 0's part. The roster's verdict is on the store when it returns. Errors (the store failed):
// Unavailable.
absl::StatusOr<Roster> LeadMeeting(Store* store, const PeerInfo& self, int world_size,
                                   absl::Duration timeout);

// Any other rank's part. Errors: Unavailable when rank 0 does not come or the store is lost.
absl::StatusOr<Roster> FollowMeeting(Store* store, const PeerInfo& self, absl::Duration timeout);

}  // namespace ft
