// The TCP connections of the monitor: from rank 0 to each other rank.
#pragma once

#include <vector>

#include "absl/status/statusor.h"
#include "runtime/collective/net/socket.h"
#include "runtime/collective/rendezvous/rendezvous.h"

namespace ft {

// By rank: rank 0 gets one to each other rank, any other rank only [0]; the rest is invalid. Every rank has
// to call it. Errors: Unavailable when a rank does not come within the rendezvous's time.
absl::StatusOr<std::vector<Fd>> ConnectStar(const Rendezvous& rendezvous);

}  // namespace ft
