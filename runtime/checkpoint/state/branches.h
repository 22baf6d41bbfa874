// Which checkpoints of a folder are of one run's past. A run that goes on from an older one, or begins anew,
// in a folder where there are others is a new branch: those that it leaves behind must not be taken for its
// own later on, although their steps may be higher.
//
// The manifest says which branch a checkpoint is of and, of each branch before, up to which step it is the
// run's past. So it takes one rename, that of the branch's first checkpoint, to leave the others behind; that
// they are moved aside then makes the folder easy to read, and nothing depends on it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "runtime/checkpoint/state/folder.h"
#include "runtime/checkpoint/state/manifest.pb.h"

namespace ft {

struct BranchedCheckpoint {
  CheckpointEntry entry;
  std::optional<proto::Manifest::Branch> branch;  // absent: no manifest, or none that can be read
};

// The checkpoints in `folder`, newest first, each with its branch: every manifest is read. Errors: those of
// ListCheckpoints.
absl::StatusOr<std::vector<BranchedCheckpoint>> ListBranches(const std::string& folder);

// Whether a checkpoint of branch `other`, after `step`, is in the past of one of `branch` or is of it.
bool IsInPast(const proto::Manifest::Branch& branch, const proto::Manifest::Branch& other, uint64_t step);

// What a run may go on from, newest first: of the newest branch and its past. Those of no known branch are
// among them: whoever tries them says what is wrong.
std::vector<CheckpointEntry> NewestBranch(const std::vector<BranchedCheckpoint>& there);

// Where a run begins: after `step` steps of a checkpoint of `branch` that lies in the folder.
struct BranchPoint {
  proto::Manifest::Branch branch;
  uint64_t step = 0;
};

struct Departure {
  proto::Manifest::Branch branch;     // what the run's checkpoints are of
  std::vector<CheckpointEntry> left;  // those that it does not continue, newest first
};

// `from` is absent where the run begins anew, or elsewhere. Nothing that has no manifest is left behind.
Departure Depart(const std::vector<BranchedCheckpoint>& there, const std::optional<BranchPoint>& from);

// Moves checkpoints of `folder` into a new folder in it, "abandoned-1", or the next number that is free, and
// returns its path; all that is on the disk then. Of the step of `published` it is the one that was replaced
// by that, with keep_replaced. Those that are not there are passed over; empty: all were. Errors: the
// system's; what was moved until then stays there, and the rest may be moved by another call.
absl::StatusOr<std::string> MoveAside(const std::string& folder, const std::vector<CheckpointEntry>& left,
                                      const StagedCheckpoint& published);

// "step 30", "steps 20 and 30", "7 steps from 20 to 80".
std::string StepsText(const std::vector<CheckpointEntry>& checkpoints);

}  // namespace ft
