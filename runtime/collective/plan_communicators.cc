#include "runtime/collective/plan_communicators.h"

#include <algorithm>
#include <utility>

#include "runtime/base/status_macros.h"
#include "runtime/plan/channels.h"

namespace ft {

void CommunicatorTable::AttachStream(proto::Stream stream, void* native_stream) const {
  for (Communicator* communicator : rows_[stream]) {
    if (communicator != nullptr) communicator->AttachStream(native_stream);
  }
}

std::vector<Communicator*> CommunicatorTable::Distinct() const {
  std::vector<Communicator*> all;
  for (const auto& row : rows_) {
    for (Communicator* communicator : row) {
      if (communicator != nullptr && std::find(all.begin(), all.end(), communicator) == all.end())
        all.push_back(communicator);
    }
  }
  return all;
}

bool CommunicatorTable::HasWindows() const {
  const std::vector<Communicator*> all = Distinct();
  return std::any_of(all.begin(), all.end(), [](const Communicator* one) { return one->has_windows(); });
}

absl::Status CommunicatorTable::RegisterBuffer(void* data, size_t bytes) const {
  for (Communicator* communicator : Distinct()) FT_RETURN_IF_ERROR(communicator->RegisterBuffer(data, bytes));
  return absl::OkStatus();
}

void CommunicatorTable::Supervise(proto::Stream stream, const std::function<InFlight()>& in_flight,
                                  const std::function<void(const absl::Status&)>& on_failure) const {
  for (Communicator* communicator : rows_[stream]) {
    if (communicator != nullptr) communicator->Supervise(in_flight, on_failure);
  }
}

void CommunicatorTable::Detach() const {
  for (Communicator* communicator : Distinct()) communicator->Detach();
}

void CommunicatorTable::AbortAll(const absl::Status& reason) const {
  if (host_ != nullptr) host_->Abort(reason);
  for (Communicator* communicator : Distinct()) communicator->Abort(reason);
}

std::vector<CommunicatorGroup> CommunicatorGroups(const proto::Plan& plan, const Mesh& mesh, int rank) {
  std::vector<CommunicatorGroup> groups;
  for (Channel& channel : ChannelsOf(plan, mesh, rank))
    groups.push_back({.ranks = std::move(channel.ranks), .gathers = channel.stream == proto::GATHER});
  return groups;
}

size_t StagingBytes(const proto::Plan& plan, const Mesh& mesh, CollectiveBackend backend,
                    bool deterministic) {
  size_t bytes = 0;
  for (const CommunicatorGroup& group : CommunicatorGroups(plan, mesh, 0))
    bytes += StagingBytes(backend, static_cast<int>(group.ranks.size()), deterministic);
  return bytes;
}

PlanCommunicators::PlanCommunicators(const proto::Plan& plan, const Mesh& mesh, int rank,
                                     std::vector<std::unique_ptr<Communicator>> made,
                                     std::unique_ptr<Communicator> host)
    : owned_(std::move(made)), host_(std::move(host)) {
  const std::vector<Channel> channels = ChannelsOf(plan, mesh, rank);
  for (size_t i = 0; i < channels.size(); ++i) {
    for (const proto::Axis axis : channels[i].axes) table_.Set(channels[i].stream, axis, owned_[i].get());
  }
  table_.SetHost(host_.get());
}

size_t PlanCommunicators::staging_bytes() const {
  size_t bytes = 0;
  for (const auto& communicator : owned_) bytes += communicator->staging_bytes();
  return bytes;
}

absl::StatusOr<PlanCommunicators> CreatePlanCommunicators(const Rendezvous& rendezvous,
                                                          const proto::Plan& plan, const Mesh& mesh,
                                                          const CommunicatorOptions& options) {
  const int rank = rendezvous.rank();
  FT_ASSIGN_OR_RETURN(auto made,
                      CreateCommunicators(rendezvous, CommunicatorGroups(plan, mesh, rank), options));
  std::unique_ptr<Communicator> host;
  if (options.cuda.has_value()) {
    FT_ASSIGN_OR_RETURN(host, CreateHostCommunicator(rendezvous, options));
  }
  return PlanCommunicators(plan, mesh, rank, std::move(made), std::move(host));
}

}  // namespace ft
