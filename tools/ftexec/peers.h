// The other ranks of a run: how this one meets them, and what ties it to them afterwards.
#pragma once

#include <memory>
#include <string>

#include "absl/status/status.h"
#include "runtime/collective/create.h"
#include "runtime/collective/liveness/peer_monitor.h"
#include "runtime/collective/plan_communicators.h"
#include "runtime/collective/rendezvous/rendezvous.h"
#include "tools/ftexec/failure_report.h"
#include "tools/ftexec/flags.h"
#include "tools/ftexec/job.h"
#include "tools/ftexec/rank_device.h"

namespace ft {

// The ranks' ties to each other. Members go in the opposite order: the rendezvous, which may serve the store,
// last.
struct Peers {
  std::unique_ptr<Rendezvous> rendezvous;
  std::unique_ptr<PeerMonitor> monitor;
  PlanCommunicators communicators;
  CollectiveBackend backend = CollectiveBackend::kAuto;

  Communicator& host() const { return communicators.world(); }  // while no program runs
};

// Rendezvous, instruction set, watch, communicators: all that a run needs of the others. `report` learns whom
// this rank has met. Errors: of each.
absl::Status Meet(const Flags& flags, const Job& job, RankDevice& device, FailureReport& report,
                  Peers& peers);

// The last part of it, with ranks that have met and whose device is settled.
absl::Status Connect(const Flags& flags, const Job& job, const RankDevice& device, Peers& peers);

// This rank fails: tells the others, who need not wait for what it still writes. Returns what to say of the
// failure.
absl::Status TellPeers(PeerMonitor& monitor, const absl::Status& status);

}  // namespace ft
