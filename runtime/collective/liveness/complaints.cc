#include "runtime/collective/liveness/complaints.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"

namespace ft {
namespace {

// What a message has room for beside the words.
constexpr size_t kMaxMissing = 1000;

bool IsIn(const std::vector<int>& ranks, size_t rank) {
  return std::find(ranks.begin(), ranks.end(), static_cast<int>(rank)) != ranks.end();
}

}  // namespace

std::string ComplaintText(const Complaint& complaint) {
  const auto end = complaint.missing.begin() +
                   static_cast<std::ptrdiff_t>(std::min(complaint.missing.size(), kMaxMissing));
  return absl::StrCat(absl::StrJoin(complaint.missing.begin(), end, ","), " ", complaint.words);
}

std::optional<Complaint> ParseComplaint(absl::string_view text, size_t world_size) {
  const size_t blank = text.find(' ');
  if (blank == absl::string_view::npos) return std::nullopt;
  Complaint complaint;
  complaint.words = std::string(text.substr(blank + 1));
  for (const absl::string_view word : absl::StrSplit(text.substr(0, blank), ',', absl::SkipEmpty())) {
    size_t rank = 0;
    if (!absl::SimpleAtoi(word, &rank) || rank >= world_size) return std::nullopt;
    complaint.missing.push_back(static_cast<int>(rank));
  }
  return complaint;
}

void Complaints::Add(size_t rank, Complaint complaint) {
  if (rank >= by_rank_.size() || by_rank_[rank].has_value()) return;
  std::vector<int>& missing = complaint.missing;
  missing.erase(
      std::remove_if(missing.begin(), missing.end(),
                     [&](int other) { return other < 0 || static_cast<size_t>(other) >= by_rank_.size(); }),
      missing.end());
  by_rank_[rank] = std::move(complaint);
  order_.push_back(rank);
}

bool Complaints::Complete() const {
  if (order_.size() == by_rank_.size()) return true;
  if (order_.size() + 1 != by_rank_.size()) return false;
  const auto last = std::find(by_rank_.begin(), by_rank_.end(), std::nullopt);
  const auto rank = static_cast<size_t>(last - by_rank_.begin());
  return std::any_of(order_.begin(), order_.end(),
                     [&](size_t other) { return IsIn(by_rank_[other]->missing, rank); });
}

size_t Complaints::Complaining(const Complaint& complaint) const {
  return static_cast<size_t>(std::count_if(complaint.missing.begin(), complaint.missing.end(), [&](int rank) {
    return by_rank_[static_cast<size_t>(rank)].has_value();
  }));
}

size_t Complaints::Chosen() const {
  // Of equals the first.
  return *std::min_element(order_.begin(), order_.end(), [&](size_t a, size_t b) {
    const auto worth = [&](size_t rank) {
      const Complaint& complaint = *by_rank_[rank];
      const size_t complaining = Complaining(complaint);
      return std::tuple(complaining == complaint.missing.size(), complaint.missing.empty(), complaining);
    };
    return worth(a) < worth(b);
  });
}

}  // namespace ft
