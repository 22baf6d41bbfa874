// The checkpoints of a run: which it goes on from, when it saves, and what is said of it.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "runtime/checkpoint/state/held_folder.h"
#include "runtime/collective/liveness/peer_monitor.h"
#include "runtime/collective/rendezvous/peer_info.h"
#include "runtime/executor/activity.h"
#include "runtime/executor/checkpoint_saver.h"
#include "runtime/executor/executor.h"
#include "runtime/executor/load_state.h"
#include "runtime/executor/resume.h"
#include "runtime/executor/training_loop.h"
#include "tools/ftexec/branching.h"
#include "tools/ftexec/flags.h"
#include "tools/ftexec/job.h"
#include "tools/ftexec/rank_device.h"

namespace ft {

// Disks may be slow, and some ranks have more to do than others; nobody waits for a collective meanwhile.
inline constexpr absl::Duration kCheckpointPatience = absl::Hours(2);

// As which type checkpoints are written; `one_host`: all ranks are on one.
CheckpointType ChooseCheckpointType(const Flags& flags, bool one_host);

// Of a run with --resume.
ResumeRequest ResumeRequestOf(const Flags& flags, const proto::Plan& plan);

class Checkpoints {
 public:
  // A line for a person, by rank 0: what happened, or what went wrong.
  struct Voice {
    std::function<void(const std::string& line)> say;
    std::function<void(const std::string& line)> warn;
  };

  // All ranks, after they met, `peers` by rank. All but these must outlive it. Errors: a folder that cannot
  // be made or written, that not all ranks see, or that another run writes into.
  static absl::StatusOr<std::unique_ptr<Checkpoints>> Open(const Flags& flags, Job& job,
                                                           const RankDevice& device, const Executor& executor,
                                                           PeerMonitor& monitor,
                                                           const std::vector<PeerInfo>& peers, Voice voice);

  // With --resume: the state into the fresh arena, and the job's settings from the manifest. Memory for
  // saving in any case. False when there is nothing to go on from. What keeps any rank from it is the error
  // of all.
  absl::StatusOr<bool> Begin();
  const TrainingPosition& position() const { return position_; }
  const TrainingStability& stability() const { return stability_; }
  // Whether plan, ranks and machine are those that the run had until it was resumed.
  bool is_same_setup() const { return same_setup_; }

  // From here on: what the calling thread, and the one that writes, are at.
  void Tell(ActivityRecord* activity, ActivityRecord* saving) { activity_ = activity, saving_ = saving; }

  // After each step, on all ranks: saves when it is time to, or somebody wishes for it. True: the run ends
  // here.
  absl::StatusOr<bool> AtBoundary(TrainingLoop& loop, std::optional<double> eval_loss);

  // At the end of the run: the last checkpoint is there when it returns. Errors: it could not be written.
  absl::Status Finish(TrainingLoop& loop);

  // What the newest save cost that ended since the last call.
  std::optional<SaveCost> TakeCost() { return std::exchange(cost_, std::nullopt); }

 private:
  Checkpoints(const Flags& flags, Job& job, const RankDevice& device, const Executor& executor,
              PeerMonitor& monitor, Voice voice);
  absl::Status CheckFolder();
  absl::StatusOr<bool> Resume();
  absl::Status Prepare();
  absl::Status EndTogether(const absl::Status& own);
  absl::Status LeaveBehind(SaveSettings& settings);
  void AddConfig(SaveSettings& settings) const;
  absl::Status Save(TrainingLoop& loop);
  absl::Status Report(bool last);
  bool IsDue(int64_t steps_done, Order order);

  const Flags& flags_;
  Job& job_;
  const RankDevice& device_;
  const Executor& executor_;
  PeerMonitor& monitor_;
  const Voice voice_;
  Hosts hosts_;
  ActivityRecord* activity_ = nullptr;
  ActivityRecord* saving_ = nullptr;
  CheckpointType type_ = CheckpointType::kFull;
  StateLayout state_;
  AgreeFunction agree_;
  uint64_t ends_ = 0;  // calls of EndTogether
  TrainingPosition position_;
  TrainingStability stability_;
  bool same_setup_ = false;
  std::optional<BranchPoint> from_;
  Departure departure_;             // of rank 0
  std::optional<HeldFolder> held_;  // of rank 0, which moves and removes; longer than what writes
  std::unique_ptr<ArenaSource> source_;
  std::unique_ptr<CheckpointSaver> saver_;
  proto::Manifest description_;  // DescribeRun: what is the same in all checkpoints of the run
  absl::Time last_save_ = absl::InfinitePast();
  int64_t saved_step_ = -1;
  std::optional<double> eval_loss_;  // of the step that was done last, by this run or the one before
  std::optional<SaveCost> cost_;
};

}  // namespace ft
