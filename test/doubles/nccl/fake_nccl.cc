#include "test/doubles/nccl/fake_nccl.h"

#include <cstring>
#include <utility>
#include <vector>

#include "test/doubles/nccl/fake_nccl_state.h"

namespace ft::testing {
namespace {

FakeNccl::Comm* CommOf(CommHandle handle) { return reinterpret_cast<FakeNccl::Comm*>(handle); }

}  // namespace

FakeNccl::FakeNccl() = default;
FakeNccl::~FakeNccl() = default;

void FakeNccl::BreakRank(int world_rank, Result error) {
  const std::lock_guard<std::mutex> lock(mutex_);
  broken_[world_rank] = error;
}

Result FakeNccl::GetVersion(int* version) {
  *version = 22809;
  return nccl::kSuccess;
}
const char* FakeNccl::GetErrorString(Result result) {
  return result == nccl::kRemoteError ? "remote process exited or there was a network error" : "some error";
}
const char* FakeNccl::GetLastError(CommHandle) { return "socket 7 was\nclosed"; }

Result FakeNccl::GetUniqueId(nccl::UniqueId* id) {
  std::memset(id->internal, 0, sizeof(id->internal));
  id->internal[0] = static_cast<char>(++ids_);
  id->internal[127] = '\xFF';
  return nccl::kSuccess;
}

FakeNccl::Comm* FakeNccl::NewComm(std::shared_ptr<Clique> clique, int rank, int world_rank) {
  ++communicators_;
  return new Comm{std::move(clique), rank, world_rank};
}

Result FakeNccl::CommInitRankConfig(CommHandle* comm, int ranks, const nccl::UniqueId& id, int rank,
                                    nccl::Config* config) {
  if (config->blocking != 0 || config->size != sizeof(nccl::Config) || rank >= ranks)
    return nccl::kInvalidArgument;
  const std::lock_guard<std::mutex> lock(mutex_);
  auto& clique = cliques_[std::string(id.internal, sizeof(id.internal))];
  if (clique == nullptr) clique = std::make_shared<Clique>(ranks);
  Comm* made = NewComm(clique, rank, rank);
  *comm = made->handle();
  const std::lock_guard<std::mutex> clique_lock(clique->mutex);
  ++clique->arrived;
  return nccl::kInProgress;
}

Result FakeNccl::CommSplit(CommHandle handle, int color, int key, CommHandle* made, nccl::Config* config) {
  if (config->blocking != 0 || config->split_share != 0) return nccl::kInvalidArgument;
  Comm& comm = *CommOf(handle);
  *made = nullptr;
  const std::lock_guard<std::mutex> lock(comm.clique->mutex);
  comm.split_to = made;
  comm.split_color = color;
  comm.split_key = key;
  comm.clique->splits[comm.splits].wishes[comm.rank] = {color, key};
  return nccl::kSuccess;  // as NCCL says although it goes on
}

Result FakeNccl::CommFinalize(CommHandle handle) {
  Comm& comm = *CommOf(handle);
  const std::lock_guard<std::mutex> lock(comm.clique->mutex);
  comm.finalizing = true;
  ++comm.clique->finalized;
  return nccl::kInProgress;
}

Result FakeNccl::CommDestroy(CommHandle handle) {
  --communicators_;
  delete CommOf(handle);
  return nccl::kSuccess;
}

Result FakeNccl::CommAbort(CommHandle handle) {
  Comm* comm = CommOf(handle);
  ++aborts_;
  const std::shared_ptr<Clique> clique = comm->clique;
  {
    std::unique_lock<std::mutex> lock(clique->mutex);
    comm->aborted = true;
    clique->changed.notify_all();
    clique->changed.wait(lock, [&] { return comm->held == 0; });
  }
  --communicators_;
  delete comm;
  return nccl::kSuccess;
}

Result FakeNccl::CommGetAsyncError(CommHandle handle, Result* error) {
  Comm& comm = *CommOf(handle);
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (const auto broken = broken_.find(comm.world_rank); broken != broken_.end()) {
      *error = broken->second;
      return nccl::kSuccess;
    }
  }
  Clique& clique = *comm.clique;
  const std::lock_guard<std::mutex> lock(clique.mutex);
  *error = nccl::kInProgress;
  if (clique.arrived < clique.size ||
      (comm.finalizing && (clique.finalized < clique.size || comm.held > 0)) ||
      (comm.connecting && clique.connected < clique.size))
    return nccl::kSuccess;
  if (comm.split_to != nullptr) {
    Clique::Split& split = clique.splits[comm.splits];
    if (static_cast<int>(split.wishes.size()) < clique.size) return nccl::kSuccess;
    if (comm.split_color != nccl::kNoColor) {
      std::vector<SplitWish> wishes;
      for (const auto& [other, wish] : split.wishes) wishes.push_back(wish);
      const auto [rank, size] = PlaceInSplit(wishes, comm.rank);
      auto& made = split.made[comm.split_color];
      if (made == nullptr) {
        made = std::make_shared<Clique>(size);
        made->arrived = size;
      }
      *comm.split_to = NewComm(made, rank, comm.world_rank)->handle();
    }
    comm.split_to = nullptr;
    ++comm.splits;
  }
  if (comm.questions-- > 0) return nccl::kSuccess;
  *error = nccl::kSuccess;
  comm.busy = false;
  return nccl::kSuccess;
}

Result FakeNccl::CommRegister(CommHandle, void* data, size_t, void** registration) {
  ++registrations_;
  *registration = data;
  return nccl::kSuccess;
}
Result FakeNccl::CommDeregister(CommHandle, void*) {
  --registrations_;
  return nccl::kSuccess;
}

Result FakeNccl::Admit(CommHandle handle) {
  const Comm& comm = *CommOf(handle);
  const std::lock_guard<std::mutex> lock(comm.clique->mutex);
  return comm.busy ? nccl::kInvalidArgument : nccl::kSuccess;
}

Result FakeNccl::Enqueue(CommHandle handle, CUstream_st& stream, std::vector<NcclCall> calls) {
  Comm& comm = *CommOf(handle);
  std::shared_ptr<const Held> held;
  {
    const std::lock_guard<std::mutex> lock(comm.clique->mutex);
    comm.busy = true;
    comm.questions = 3;
    comm.clique->connected += comm.connecting ? 0 : 1;
    comm.connecting = true;
    held = std::make_shared<const Held>(comm);
  }
  stream.Submit("a group of NCCL calls",
                [held = std::move(held), calls = std::move(calls)] { return RunGroup(held->comm(), calls); });
  return nccl::kInProgress;
}

}  // namespace ft::testing
