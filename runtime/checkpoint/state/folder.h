// The folders that checkpoints lie in: which there are, how one comes to be, and which go.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace ft {

// "step-00001000": eight digits, or more.
std::string CheckpointName(uint64_t step);
// Of a name that CheckpointName makes; -1 for any other.
int64_t StepOfName(std::string_view name);

// Whether a name in a folder of checkpoints is one's, be it one that is being made or taken away.
bool IsOfCheckpoints(std::string_view name);

struct CheckpointEntry {
  uint64_t step = 0;
  std::string path;
  bool has_manifest = false;  // else it was never finished, or something took it apart
};

// The checkpoints in `folder`, newest first. A folder that is not there has none. Errors: the system's (exit
// status 74).
absl::StatusOr<std::vector<CheckpointEntry>> ListCheckpoints(const std::string& folder);

// A checkpoint that is being made: files are written into `path`, which no reader takes for a checkpoint.
struct StagedCheckpoint {
  std::string folder;
  uint64_t step = 0;

  std::string path() const;
  std::string destination() const;
  std::string replaced() const;  // where one that is in its place goes
};

// A folder and those that it lies in, where they are not there, on the disk when it returns. Errors: the
// system's.
absl::Status MakeFolders(const std::string& path);

// Makes the folder and the one staged in it; every rank may call it, in any order. Errors: the system's.
absl::Status MakeStaged(const StagedCheckpoint& staged);

// Makes what was written a checkpoint, in one step that a reader sees whole or not at all; one that is
// already there is replaced in that step, where the file system can. All files must have been fsynced.
// With `keep_replaced` the one that was there lies at staged.replaced() then, until RemoveLeftovers.
// Errors: the system's. The staged folder is as it was then, or the checkpoint is in place and may not be on
// the disk; RemoveStaged may be called in either case.
absl::Status Publish(const StagedCheckpoint& staged, bool keep_replaced = false);

// Takes away what was staged; that it is not there is no error. Errors: the system's.
absl::Status RemoveStaged(const StagedCheckpoint& staged);

// Takes away a checkpoint; nothing of it that is left is taken for one. Not being there is no error. Symbolic
// links are removed, not followed. Errors: the system's.
absl::Status RemoveCheckpoint(const std::string& path);

// What earlier runs left that is no checkpoint; one that was being replaced is put back where nothing is in
// its place. By one rank, before any saves. Errors: the system's.
absl::Status RemoveLeftovers(const std::string& folder);

// --keep=N, --keep-every=N, --keep-best=N; 0: not given.
struct Retention {
  uint64_t newest = 0;
  uint64_t every = 0;  // those of a step that this divides
  uint64_t best = 0;   // by the loss of an evaluation at that step
};

struct KeptCandidate {
  uint64_t step = 0;
  double eval_loss = 0;
  bool evaluated = false;
};

// The steps that may go, given those that there are. Without any of the three none may; the newest never.
std::vector<uint64_t> Expendable(const Retention& retention, std::vector<KeptCandidate> there);

// fsync of a file or folder. Errors: the system's.
absl::Status SyncPath(const std::string& path);

}  // namespace ft
