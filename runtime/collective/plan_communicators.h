// The communicators that a plan needs: one for each stream and axis over which a transfer of it goes.
//
// Axes that are the same ranks on this mesh (with one replica, shard and world) share a communicator: calls
// of a stream come in the same order on all ranks anyway.
#pragma once

#include <array>
#include <cstddef>
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

  // Ends what is in progress on any of them, with `reason`. Thread-safe.
  void AbortAll(const absl::Status& reason) const;

 private:
  std::array<std::array<Communicator*, proto::Axis_ARRAYSIZE>, proto::Stream_ARRAYSIZE> rows_ = {};
};

// The groups of `rank` for which communicators are to be made, in an order that is the same for all ranks.
// `plan` has passed VerifyPlan and fits the mesh. There is always one of stream `reduce` over the world, for
// the host's own use between programs.
std::vector<CommunicatorGroup> CommunicatorGroups(const proto::Plan& plan, const Mesh& mesh, int rank);

// Bytes that each rank's communicators hold for staging, all together. `backend` must not be kAuto.
size_t StagingBytes(const proto::Plan& plan, const Mesh& mesh, CollectiveBackend backend);

// The communicators of a rank.
class PlanCommunicators {
 public:
  PlanCommunicators() = default;
  // `made` is by CommunicatorGroups(plan, mesh, rank).
  PlanCommunicators(const proto::Plan& plan, const Mesh& mesh, int rank,
                    std::vector<std::unique_ptr<Communicator>> made);

  const CommunicatorTable& table() const { return table_; }
  // Over all ranks; that of stream `reduce`, to be used while no program runs.
  Communicator& world() const { return *table_.at(proto::REDUCE, proto::AXIS_WORLD); }
  size_t staging_bytes() const;

 private:
  std::vector<std::unique_ptr<Communicator>> owned_;
  CommunicatorTable table_;
};

// Makes those of this rank; every rank has to call it, once per Rendezvous. Errors: of CreateCommunicators.
absl::StatusOr<PlanCommunicators> CreatePlanCommunicators(const Rendezvous& rendezvous,
                                                          const proto::Plan& plan, const Mesh& mesh,
                                                          const CommunicatorOptions& options);

}  // namespace ft
