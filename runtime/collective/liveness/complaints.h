// Ranks that could not go on because of others: which of them says best why.
//
// A rank that does not come holds up more than those that wait for it. Who got what it needed of it just
// before goes on, and waits for one that is held up; and a rank whose time is over may close connections that
// others wait at. Their times are over, and their connections broken, within moments of each other, and each
// could name another rank. So whoever is held up complains to rank 0, naming whom it waited for: the one to
// look for is among these, and does not complain itself.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace ft {

struct Complaint {
  // Whom the rank waited for until its time was over; none: a connection broke, or the like, which is the
  // consequence of something that another rank knows more about.
  std::vector<int> missing;
  std::string words;
};

// As a message, and back; nullopt: nonsense, or of ranks outside of [0, world_size). Only the first thousand
// of `missing` are kept.
std::string ComplaintText(const Complaint& complaint);
std::optional<Complaint> ParseComplaint(absl::string_view text, size_t world_size);

// Those of all ranks of a run.
class Complaints {
 public:
  explicit Complaints(size_t world_size) : by_rank_(world_size) {}

  // The first one of a rank counts, and missing ranks beyond the world do not.
  void Add(size_t rank, Complaint complaint);
  bool empty() const { return order_.empty(); }
  // Whether nothing that may still come would change who is chosen: all ranks complain, or all but one, which
  // some waited for.
  bool Complete() const;

  // The rank whose words are those of all; there has to be one. It waited for ranks that do not complain, and
  // for as few others as possible; failing that, for any; failing that, it was the first.
  size_t Chosen() const;
  const std::string& WordsOf(size_t rank) const { return by_rank_[rank]->words; }

 private:
  size_t Complaining(const Complaint& complaint) const;

  std::vector<std::optional<Complaint>> by_rank_;
  std::vector<size_t> order_;  // ranks, as they complained
};

}  // namespace ft
