// All ranks agree on a text, on the connections of the monitor: beside the collectives of a training run, and
// without one.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "runtime/collective/liveness/peer_links.h"

namespace ft {

// Whether the error is one that all ranks got from an agreement's `decide`, each in the same words: one of
// them may say it for all. It stays so through macros that return it, and not in an error that is made of it.
bool IsKnownToAll(const absl::Status& error);

// Marks an error that every rank comes to by itself, from what all of them know.
absl::Status KnownToAll(absl::Status error);

class Agreement {
 public:
  // On rank 0, with what each rank brought: what all ranks get, or the error that all get.
  using Decide = absl::FunctionRef<absl::StatusOr<std::string>(const std::vector<std::string>& by_rank)>;

  static constexpr uint64_t kMaxBytes = uint64_t{256} << 20;  // of what a rank brings, and of the result

  // How many there were, and how many texts went to and from rank 0, counted there: the ranks but one each
  // way for each agreement. Parts of texts are not counted.
  struct Counts {
    int64_t agreements = 0;
    int64_t messages_in = 0;
    int64_t messages_out = 0;
  };

  explicit Agreement(PeerLinks& links);

  // As of PeerMonitor::Agree.
  absl::StatusOr<std::string> Agree(absl::string_view topic, uint64_t number, std::string payload,
                                    Decide decide, absl::Duration timeout);

  Counts counts() const;

  // A message of rank `rank`; PeerLinks::mutex is held.
  void Hear(size_t rank, PeerMessageType type, absl::string_view text);

 private:
  // What an agreement is about. Ranks count their calls; the n-th of one rank is the n-th of each.
  struct Subject {
    uint64_t call = 0;
    uint64_t number = 0;
    std::string topic;
  };
  // A text on its way from another rank, or arrived.
  struct Incoming {
    Subject subject;
    absl::StatusCode code = absl::StatusCode::kOk;  // else the text is an error's message
    bool decided = false;                           // the error is that of `decide`
    uint64_t size = 0;
    std::string bytes;
    bool refused = false;  // too long
    bool complete = false;
  };

  static std::string Name(const Subject& subject);
  static std::string HeadOf(const Subject& subject, absl::StatusCode code, bool decided = false);
  void Begin(size_t rank, absl::string_view text);
  absl::StatusOr<std::string> Lead(const Subject& subject, std::string payload, Decide decide,
                                   absl::Duration timeout);
  absl::StatusOr<std::vector<std::string>> Collect(const Subject& subject, std::string payload,
                                                   absl::Duration timeout);
  absl::Status Objection(const Subject& subject, std::vector<size_t>* missing) const;
  bool Tell(const Subject& subject, const absl::StatusOr<std::string>& result, bool decided);
  absl::StatusOr<std::string> Follow(const Subject& subject, std::string payload, absl::Duration timeout);
  bool Answered(const Subject& subject) const;
  void Keep(Incoming answer);

  PeerLinks& links_;
  // All of it guarded by links_.mutex().
  std::vector<Incoming> incoming_;  // by rank; elsewhere than on rank 0 only [0]
  // Elsewhere than on rank 0: what it said of this call or, where it waited no longer, of later ones.
  std::deque<Incoming> answers_;
  uint64_t calls_ = 0;
  bool busy_ = false;
  bool stirred_ = false;  // something arrived that Collect has not looked at
  Counts counts_;
};

}  // namespace ft
