// Where in its folder of checkpoints a run begins, and what it leaves behind there.
#pragma once

#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "runtime/checkpoint/state/branches.h"
#include "runtime/checkpoint/state/checkpoint_reader.h"

namespace ft {

// Of a run that goes on from `resumed` and saves in `folder`. Absent: that checkpoint lies elsewhere, so that
// those in the folder are of other runs.
std::optional<BranchPoint> BranchPointIn(const std::string& folder, const CheckpointReader& resumed);

// Of rank 0. `from` as above, or absent where the run begins anew. Errors: the system's.
absl::StatusOr<Departure> DepartureIn(const std::string& folder, const std::optional<BranchPoint>& from);

// What to say of it at the start of the run, and when the checkpoints are at `aside`. Of none that is left
// behind there is nothing to say.
std::string DepartureText(const std::string& folder, const Departure& departure);
std::string AsideText(const Departure& departure, const std::string& aside);

}  // namespace ft
