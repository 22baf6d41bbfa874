// Finds out that a collective does not end, and which ranks are not in it.
//
// A rank whose collective takes longer than half the time allowed says so in the rendezvous's store; when the
// time is over, those of the group that have not said it of the same collective are the missing ones. In a
// run that goes well the store is never asked.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "runtime/collective/rendezvous/store.h"

namespace ft::nccl {

// A collective that has begun and not ended, here.
struct Position {
  // Whether the host is still handing it to NCCL, which makes connections first, or the device is in it. Both
  // are counted on their own.
  enum class Side : char { kEnqueue = 'e', kDevice = 'd' };
  Side side = Side::kDevice;
  uint64_t sequence = 0;
  std::string name;  // "all_gather transformer.h.3"
};

// "'all_gather transformer.h.3' #17"
std::string Describe(const Position& position);

class StallDetector {
 public:
  struct Options {
    Store* store = nullptr;  // may be null: nobody can be asked then
    std::string key;         // in the store; of this group alone
    int rank = 0;
    std::vector<std::string> members;  // by rank of the group: "rank 6 (pid 17 on node-a)"
    absl::Duration timeout = absl::Seconds(300);
  };
  explicit StallDetector(Options options) : options_(std::move(options)) {}

  // To be called again and again with where this rank is; nullopt: in no collective. Errors: Unavailable when
  // one has lasted longer than the time-out, naming it and who is missing.
  absl::Status Look(absl::Time now, const std::optional<Position>& position);

 private:
  void Publish();
  absl::Status TimedOut() const;
  // Ranks that have not said that they are where this one is. Errors: the store's, the first.
  absl::StatusOr<std::vector<int>> Missing() const;

  const Options options_;
  std::optional<Position> position_;
  absl::Time since_;
  bool published_ = false;
};

}  // namespace ft::nccl
