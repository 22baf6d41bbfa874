// The communicators that a plan needs: one for each stream and axis over which a transfer of it goes.
//
// Axes that are the same ranks on this mesh (with one replica, shard and world) share a communicator: calls
// of a stream come in the same order on all ranks anyway.
#pragma once

#include <array>
#include <cstddef>
#include <functional>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "runtime/collective/communicator.h"
#include "runtime/collective/create.h"
#include "runtime/plan/mesh.h"
#include "runtime/plan/plan.pb.h"

namespace ft {

// Which communicator serves transfers of a stream over an axis; null where there are none. Owns nothing.
class CommunicatorTable {
 public:
  Communicator* at(proto::Stream stream, proto::Axis axis) const { return rows_[stream][axis]; }
  void Set(proto::Stream stream, proto::Axis axis, Communicator* communicator) {
    rows_[stream][axis] = communicator;
  }

  // Tells those of a stream which stream of the device they are on.
  void AttachStream(proto::Stream stream, void* native_stream) const;

  // Whether any of them gets faster by memory that other ranks can map.
  bool HasWindows() const;

  // Communicator::RegisterBuffer for all of them; with HasWindows() every rank has to call it.
  absl::Status RegisterBuffer(void* data, size_t bytes) const;

  // Communicator::Supervise for those of a stream.
  void Supervise(proto::Stream stream, const std::function<InFlight()>& in_flight,
                 const std::function<void(const absl::Status&)>& on_failure) const;

  // Communicator::Detach for all of them.
  void Detach() const;

  // What the host uses between programs; null: that of stream `reduce` over the world.
  void SetHost(Communicator* communicator) { host_ = communicator; }

  // Ends what is in progress on any of them, with `reason`. Thread-safe.
  void AbortAll(const absl::Status& reason) const;

 private:
  // Each once, in an order that is the same on every rank.
  std::vector<Communicator*> Distinct() const;

  std::array<std::array<Communicator*, proto::Axis_ARRAYSIZE>, proto::Stream_ARRAYSIZE> rows_ = {};
  Communicator* host_ = nullptr;
};

// The groups of `rank` for which communicators are to be made, in an order that is the same for all ranks.
// `plan` has passed VerifyPlan and fits the mesh. There is always one of stream `reduce` over the world, for
// the host's own use between programs.
std::vector<CommunicatorGroup> CommunicatorGroups(const proto::Plan& plan, const Mesh& mesh, int rank);

// Bytes that each rank's communicators hold for staging, all together; with kNccl, memory of the device.
// `backend` must not be kAuto.
size_t StagingBytes(const proto::Plan& plan, const Mesh& mesh, CollectiveBackend backend,
                    bool deterministic = false);

// The communicators of a rank.
class PlanCommunicators {
 public:
  PlanCommunicators() = default;
  // `made` is by CommunicatorGroups(plan, mesh, rank). `host` is over the world, and null where those can
  // reach the host's memory themselves.
  PlanCommunicators(const proto::Plan& plan, const Mesh& mesh, int rank,
                    std::vector<std::unique_ptr<Communicator>> made,
                    std::unique_ptr<Communicator> host = nullptr);

  const CommunicatorTable& table() const { return table_; }
  // Over all ranks, for the host's memory: to be used while no program runs.
  Communicator& world() const {
    return host_ != nullptr ? *host_ : *table_.at(proto::REDUCE, proto::AXIS_WORLD);
  }
  size_t staging_bytes() const;
  // Of what the host uses beside the above.
  size_t host_staging_bytes() const { return host_ == nullptr ? 0 : host_->staging_bytes(); }

 private:
  std::vector<std::unique_ptr<Communicator>> owned_;
  std::unique_ptr<Communicator> host_;
  CommunicatorTable table_;
};

// Makes those of this rank; every rank has to call it, once per Rendezvous. Where collectives work on the
// memory of GPUs the host gets a communicator of its own. Errors: of CreateCommunicators.
absl::StatusOr<PlanCommunicators> CreatePlanCommunicators(const Rendezvous& rendezvous,
                                                          const proto::Plan& plan, const Mesh& mesh,
                                                          const CommunicatorOptions& options);

}  // namespace ft
