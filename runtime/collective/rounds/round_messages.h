// What transports say when a round goes wrong.
#pragma once

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "runtime/collective/rounds/round_exchange.h"

namespace ft {

// OK when both headers speak of the same collective. Errors: Internal, naming both. `members` tells who the
// ranks of the group are: "rank 6 (pid 17 on node-a)".
absl::Status CompareHeaders(const std::vector<std::string>& members, int rank, const RoundHeader& own,
                            int peer, const RoundHeader& theirs);

// Unavailable: who is missing from which collective (MissingRanks).
absl::Status RoundTimedOut(const RoundHeader& own, absl::Duration timeout, const std::vector<int>& missing,
                           const std::vector<std::string>& members);

// "'all_gather h.3' #17 (4096 bytes)"
std::string Describe(const RoundHeader& header);

}  // namespace ft
