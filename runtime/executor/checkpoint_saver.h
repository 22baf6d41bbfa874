// Saves checkpoints of a run: each rank its share, side by side, and one agreement at the end.
//
// The state is copied into host memory (a snapshot) and training goes on; a thread writes. A checkpoint is
// published by rank 0 when every rank's files are on the disk, with the manifest in it. What fails leaves the
// checkpoints that there are as they were.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "runtime/checkpoint/state/completion.h"
#include "runtime/checkpoint/state/file_layout.h"
#include "runtime/checkpoint/state/folder.h"
#include "runtime/checkpoint/state/manifest.h"
#include "runtime/checkpoint/state/share_writer.h"
#include "runtime/device/device.h"
#include "runtime/executor/activity.h"
#include "runtime/metrics/step_metrics.h"

namespace ft {

// All ranks call it with what each brings; rank 0's `decide` gets that of all, and all get what it returns.
// From any thread, one call at a time. PeerMonitor::Agree, in short.
using AgreeFunction = std::function<absl::StatusOr<std::string>(
    std::string_view topic, uint64_t number, std::string payload,
    absl::FunctionRef<absl::StatusOr<std::string>(const std::vector<std::string>& by_rank)> decide)>;

struct SaveSettings {
  std::string folder;
  bool async = true;
  Retention retention = {};
  ExtraFiles extra_files = {};
  // On rank 0: those in the folder that the run does not go on from. They are moved aside when its first one
  // is there.
  std::vector<CheckpointEntry> left_behind = {};
  Hosts hosts = {};
  ActivityRecord* activity = nullptr;  // of whoever writes: the saver's thread, else that of Save
};

class CheckpointSaver {
 public:
  // Allocates the snapshot, in host memory that `device` copies into fastest, touched, and starts the thread.
  // `source` gives what is in the arena while nothing runs; it, the device and what `agree` refers to must
  // outlive the saver. Errors: those of StartThread, ResourceExhausted.
  static absl::StatusOr<std::unique_ptr<CheckpointSaver>> Create(FileLayout layout, int rank,
                                                                 const SaveSettings& settings, Device& device,
                                                                 StateSource& source, AgreeFunction agree);
  // Waits for a save that is under way.
  ~CheckpointSaver();

  // Saves the state as it is now; nothing may run on the device. `manifest` is complete but for the state's
  // layout and the files. Every rank has to call it at the same step. A save that is still under way is
  // waited for. Asynchronously it returns when the state is copied. Errors: those of `source`, after which
  // the other ranks learn that this one failed.
  absl::Status Save(proto::Manifest manifest);

  // Waits for the save under way.
  void Wait();

  // How the saves that ended since the last call went: an error for one that failed, with the words of the
  // rank that did. Such a run may go on: the checkpoints before are as they were.
  struct Outcome {
    uint64_t step = 0;
    absl::Status status = {};
    std::string note = {};  // what went wrong after it was published; empty: nothing
    std::string aside =
        {};  // on rank 0: where those of settings.left_behind are now; empty: they were not moved
    SaveCost cost = {};
  };
  std::vector<Outcome> TakeOutcomes();

  // Whether the last call of Save had to wait for the one before.
  bool was_delayed() const { return delayed_; }

 private:
  CheckpointSaver(FileLayout layout, int rank, const SaveSettings& settings, StateSource& source,
                  AgreeFunction agree);
  absl::Status Copy();
  void Loop();
  absl::Status WriteAndAgree(StateSource& source, const proto::Manifest& manifest, const absl::Status& so_far,
                             std::string& note);
  absl::StatusOr<std::string> Decide(const proto::Manifest& manifest, const StagedCheckpoint& staged,
                                     const std::vector<std::string>& by_rank);
  absl::Status TidyUp(const proto::Manifest& manifest, const StagedCheckpoint& published);
  absl::Status Retain(const proto::Manifest& manifest);

  const FileLayout layout_;
  const int rank_;
  const SaveSettings settings_;
  StateSource& source_;
  const AgreeFunction agree_;
  const Share share_;
  std::unique_ptr<Memory> snapshot_;  // what the share takes of the state, in its order; none without async
  bool delayed_ = false;
  // Of whoever writes.
  std::vector<CheckpointEntry> left_behind_;  // that still have to be moved
  std::string aside_;                         // where the last save has moved them

  std::mutex mutex_;
  std::condition_variable changed_;
  // A save for the thread; guarded by mutex_.
  std::optional<proto::Manifest> pending_;
  absl::Status copied_;
  SaveCost pending_cost_;
  bool busy_ = false;
  bool ending_ = false;
  std::vector<Outcome> outcomes_;
  std::thread thread_;
};

}  // namespace ft
