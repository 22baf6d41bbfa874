#include "runtime/collective/rounds/round_messages.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace ft {

absl::Status CompareHeaders(int rank, const RoundHeader& own, int peer, const RoundHeader& theirs) {
  if (own.operation == theirs.operation && own.argument == theirs.argument && own.bytes == theirs.bytes &&
      own.sequence == theirs.sequence) {
    return absl::OkStatus();
  }
  return absl::InternalError(absl::StrCat("ranks are in different collectives: rank ", rank, " in ",
                                          Describe(own), ", rank ", peer, " in ", Describe(theirs)));
}

absl::Status RoundTimedOut(const RoundHeader& own, absl::Duration timeout, const std::vector<int>& missing,
                           const std::vector<std::string>& people) {
  std::vector<std::string> names;
  for (const int rank : missing)
    names.push_back(absl::StrCat("rank ", rank, " (", people[static_cast<size_t>(rank)], ")"));
  return absl::UnavailableError(absl::StrCat("timed out after ", absl::FormatDuration(timeout), " in ",
                                             Describe(own), " waiting for ", absl::StrJoin(names, ", ")));
}

std::string Describe(const RoundHeader& header) {
  return absl::StrCat("'", header.name, "' #", header.sequence, " (", header.bytes, " bytes)");
}

}  // namespace ft
