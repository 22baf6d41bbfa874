// The ranks of a calibration: how they meet, and how they time the same thing at once.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "runtime/collective/communicator.h"
#include "runtime/collective/liveness/peer_monitor.h"
#include "runtime/collective/rendezvous/rendezvous.h"
#include "runtime/plan/mesh.h"
#include "runtime/plan/node_layout.h"
#include "tools/ftexec/calibrate/sample.h"
#include "tools/ftexec/flags.h"
#include "tools/ftexec/job.h"
#include "tools/ftexec/process_guard.h"
#include "tools/ftexec/rank_device.h"

namespace ft {

// Ranks of one axis of the mesh, and how their groups lie.
struct CalibrationGroup {
  proto::Axis axis = proto::AXIS_SHARD;
  NodeLayout layout;
  // As in training, gathers and sums have one each.
  std::unique_ptr<Communicator> gathers = nullptr, sums = nullptr;

  Communicator& Of(proto::Opcode collective) const {
    return collective == proto::ALL_GATHER ? *gathers : *sums;
  }
};

class CalibrationSession {
 public:
  // Opens the device and meets the other ranks, whose job has to be the same `fingerprint`. `job` knows
  // environment and threads. What was given must outlive it. Errors: of the device, the rendezvous and the
  // communicators.
  static absl::StatusOr<std::unique_ptr<CalibrationSession>> Meet(const Flags& flags, Job& job,
                                                                  const NcclSource& load_nccl,
                                                                  ProcessGuard& guard,
                                                                  const std::string& fingerprint);
  ~CalibrationSession();

  const Job& job() const { return job_; }
  RankDevice& rank_device() const { return *device_; }
  Device& device() const { return device_->device(); }
  bool is_cpu() const { return device_->is_cpu(); }
  // Along each axis with several ranks: one where all share a node, else those of a node, those across nodes,
  // and all.
  const std::vector<CalibrationGroup>& groups() const { return groups_; }
  // Most ranks on one host.
  int ranks_on_node() const;

  // Returns once every rank has called it.
  absl::Status Barrier() const;
  // What every rank brings, by rank: equally many numbers.
  absl::StatusOr<std::vector<std::vector<double>>> All(const std::vector<double>& own) const;

  // How long the commands take on `stream`, all of them once; all ranks at the same time, each repeat after a
  // barrier, over about `seconds`. The first runs do not count. Of ranks that differ, the mean of each
  // repeat. The same on all ranks.
  absl::StatusOr<Sample> Time(Stream& stream, absl::Span<const Command> commands, double seconds) const;

  // All ranks are done.
  absl::Status Goodbye() const { return monitor_->Goodbye(); }
  // The failure of this rank, told to the others.
  absl::Status Tell(const absl::Status& status) const;

 private:
  CalibrationSession(Job& job, ProcessGuard& guard) : job_(job), guard_(guard) {}
  absl::Status Connect(const Flags& flags);
  void Cancel(const absl::Status& reason);

  Job& job_;
  ProcessGuard& guard_;
  std::unique_ptr<RankDevice> device_;
  std::unique_ptr<Rendezvous> rendezvous_;
  std::unique_ptr<PeerMonitor> monitor_;
  std::unique_ptr<Communicator> host_;  // over all ranks, for the host's memory
  std::vector<CalibrationGroup> groups_;
};

}  // namespace ft
