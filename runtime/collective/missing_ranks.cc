#include "runtime/collective/missing_ranks.h"

#include "absl/strings/cord.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"

namespace ft {
namespace {

constexpr char kPayload[] = "ft/missing-ranks";

}  // namespace

void SetMissingRanks(absl::Span<const std::string> members, absl::Status& status) {
  std::string text;
  for (const std::string& member : members) {
    absl::string_view rest = member;
    int rank = 0;
    if (!absl::ConsumePrefix(&rest, "rank ") || !absl::SimpleAtoi(rest.substr(0, rest.find(' ')), &rank))
      continue;
    absl::StrAppend(&text, text.empty() ? "" : ",", rank);
  }
  if (!text.empty()) status.SetPayload(kPayload, absl::Cord(text));
}

std::vector<int> MissingRanks(const absl::Status& status) {
  std::vector<int> ranks;
  const auto payload = status.GetPayload(kPayload);
  if (!payload.has_value()) return ranks;
  for (const absl::string_view word : absl::StrSplit(std::string(*payload), ',')) {
    int rank = 0;
    if (absl::SimpleAtoi(word, &rank)) ranks.push_back(rank);
  }
  return ranks;
}

absl::Status WithWords(const absl::Status& error, const std::string& words) {
  absl::Status status(error.code(), words);
  if (const auto payload = error.GetPayload(kPayload); payload.has_value())
    status.SetPayload(kPayload, *payload);
  return status;
}

}  // namespace ft
