#include "runtime/collective/rounds/round_messages.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "runtime/collective/missing_ranks.h"

namespace ft {

absl::Status CompareHeaders(const std::vector<std::string>& members, int rank, const RoundHeader& own,
                            int peer, const RoundHeader& theirs) {
  if (own.operation == theirs.operation && own.argument == theirs.argument && own.bytes == theirs.bytes &&
      own.sequence == theirs.sequence) {
    return absl::OkStatus();
  }
  return absl::InternalError(
      absl::StrCat("ranks are in different collectives: ", members[static_cast<size_t>(rank)], " in ",
                   Describe(own), ", ", members[static_cast<size_t>(peer)], " in ", Describe(theirs)));
}

absl::Status RoundTimedOut(const RoundHeader& own, absl::Duration timeout, const std::vector<int>& missing,
                           const std::vector<std::string>& members) {
  std::vector<std::string> names;
  for (const int rank : missing) names.push_back(members[static_cast<size_t>(rank)]);
  absl::Status status =
      absl::UnavailableError(absl::StrCat("timed out after ", absl::FormatDuration(timeout), " in ",
                                          Describe(own), " waiting for ", absl::StrJoin(names, ", ")));
  SetMissingRanks(names, status);
  return status;
}

std::string Describe(const RoundHeader& header) {
  return absl::StrCat("'", header.name, "' #", header.sequence, " (", header.bytes, " bytes)");
}

}  // namespace ft
