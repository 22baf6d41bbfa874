#include "runtime/collective/nccl/stall_detector.h"

#include <algorithm>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/time/clock.h"
#include "runtime/base/status_macros.h"
#include "runtime/collective/missing_ranks.h"

namespace ft::nccl {
namespace {

// How long after the end of its time a collective is given up: ranks that reach it later than others say so
// later too.
absl::Duration Grace(absl::Duration timeout) { return std::min(timeout / 4, absl::Seconds(2)); }

constexpr absl::Duration kAnswer = absl::Seconds(2);  // of the store, for a key that is there

std::string Key(const std::string& group, int rank) { return absl::StrCat(group, "/stalled/", rank); }

std::string SideText(Position::Side side) { return std::string(1, static_cast<char>(side)); }

}  // namespace

std::string Describe(const Position& position) {
  return absl::StrCat("'", position.name, "' #", position.sequence);
}

absl::Status StallDetector::Look(absl::Time now, const std::optional<Position>& position) {
  const bool same = position.has_value() == position_.has_value() &&
                    (!position.has_value() ||
                     (position->sequence == position_->sequence && position->side == position_->side));
  if (!same) {
    position_ = position;
    since_ = now;
    published_ = false;
  }
  if (!position_.has_value()) return absl::OkStatus();
  const absl::Duration lasted = now - since_;
  if (lasted >= options_.timeout / 2 && !published_) Publish();
  if (lasted < options_.timeout + Grace(options_.timeout)) return absl::OkStatus();
  return TimedOut();
}

void StallDetector::Publish() {
  published_ = true;
  if (options_.store == nullptr) return;
  // Without a store the others will count this rank as missing; its own error comes from its own clock.
  options_.store
      ->Set(Key(options_.key, options_.rank),
            absl::StrCat(SideText(position_->side), " ", position_->sequence, " ", position_->name))
      .IgnoreError();
}

absl::StatusOr<std::vector<int>> StallDetector::Missing() const {
  std::vector<int> missing;
  for (int peer = 0; peer < static_cast<int>(options_.members.size()); ++peer) {
    if (peer == options_.rank) continue;
    const std::string key = Key(options_.key, peer);
    FT_ASSIGN_OR_RETURN(const bool known, options_.store->Check({key}));
    bool here = false;
    if (known) {
      FT_ASSIGN_OR_RETURN(const std::string said, options_.store->Get(key, absl::Now() + kAnswer));
      here = absl::StartsWith(said, absl::StrCat(SideText(position_->side), " ", position_->sequence, " "));
    }
    if (!here) missing.push_back(peer);
  }
  return missing;
}

absl::Status StallDetector::TimedOut() const {
  const std::string what =
      absl::StrCat("timed out after ", absl::FormatDuration(options_.timeout), " in ", Describe(*position_));
  if (options_.store == nullptr) return absl::UnavailableError(what);
  // A store that is gone takes long to say nothing: it is not asked about the next rank.
  const absl::StatusOr<std::vector<int>> missing = Missing();
  if (!missing.ok()) {
    return absl::UnavailableError(
        absl::StrCat(what, "; who is missing is not known: ", missing.status().message()));
  }
  std::vector<std::string> names;
  for (const int rank : *missing) names.push_back(options_.members[static_cast<size_t>(rank)]);
  if (names.empty()) {
    return absl::UnavailableError(absl::StrCat(what,
                                               ", which all ranks have reached: the connection between "
                                               "them has stopped"));
  }
  absl::Status status =
      absl::UnavailableError(absl::StrCat(what, " waiting for ", absl::StrJoin(names, ", ")));
  SetMissingRanks(names, status);
  return status;
}

}  // namespace ft::nccl
