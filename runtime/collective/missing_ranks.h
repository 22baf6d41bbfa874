// Which ranks a collective that took too long was waiting for, along with its error.
#pragma once

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"

namespace ft {

// `members` are as messages name them, "rank 6 (pid 17 on node-a)", numbered as the whole run counts; what is
// named otherwise is left out.
void SetMissingRanks(absl::Span<const std::string> members, absl::Status& status);

// Empty: nothing is said of any.
std::vector<int> MissingRanks(const absl::Status& status);

// `error` with other words: of its code, and with what it says of missing ranks.
absl::Status WithWords(const absl::Status& error, const std::string& words);

}  // namespace ft
