// NCCL for tests: its ranks are threads of this process, its streams anything with Submit, its kernels copies
// between the ranks' buffers, which wait for each other on the streams as NCCL's do on devices.
//
// As in NCCL calls return before the work is done, sometimes kInProgress first, and until that has been asked
// about the communicator takes no other; nothing of a communicator goes on without all of its ranks, not even
// the enqueuing of its first group; an aborted one leaves its stream idle and its peers waiting. Its end,
// also an abort, waits until the streams have passed all of its groups and no recording has any. Sums go from
// the last rank to the first, rounded to the element's type each time, so that nobody takes them for the
// tree's.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include "test/doubles/nccl/nccl_double.h"

namespace ft::testing {

class FakeNccl final : public NcclDouble {
 public:
  FakeNccl();
  ~FakeNccl() override;

  // What the communicators of a rank of the world tell of themselves from now on.
  void BreakRank(int world_rank, nccl::Result error);

  int communicators() const { return communicators_; }  // that exist
  int registrations() const { return registrations_; }  // that exist
  int aborts() const { return aborts_; }                // so far

  nccl::Result GetVersion(int* version) override;
  const char* GetErrorString(nccl::Result result) override;
  const char* GetLastError(nccl::CommHandle comm) override;
  nccl::Result GetUniqueId(nccl::UniqueId* id) override;
  nccl::Result CommInitRankConfig(nccl::CommHandle* comm, int ranks, const nccl::UniqueId& id, int rank,
                                  nccl::Config* config) override;
  nccl::Result CommSplit(nccl::CommHandle comm, int color, int key, nccl::CommHandle* made,
                         nccl::Config* config) override;
  nccl::Result CommFinalize(nccl::CommHandle comm) override;
  nccl::Result CommDestroy(nccl::CommHandle comm) override;
  nccl::Result CommAbort(nccl::CommHandle comm) override;
  nccl::Result CommGetAsyncError(nccl::CommHandle comm, nccl::Result* error) override;
  nccl::Result CommRegister(nccl::CommHandle comm, void* data, size_t bytes, void** registration) override;
  nccl::Result CommDeregister(nccl::CommHandle comm, void* registration) override;

  struct Clique;
  struct Comm;
  class Held;

 private:
  nccl::Result Admit(nccl::CommHandle comm) override;
  nccl::Result Enqueue(nccl::CommHandle comm, CUstream_st& stream, std::vector<NcclCall> calls) override;
  Comm* NewComm(std::shared_ptr<Clique> clique, int rank, int world_rank);

  std::mutex mutex_;
  std::unordered_map<std::string, std::shared_ptr<Clique>> cliques_;  // by unique id
  std::unordered_map<int, nccl::Result> broken_;                      // by rank of the world
  std::atomic<int> ids_ = 0, communicators_ = 0, registrations_ = 0, aborts_ = 0;
};

}  // namespace ft::testing
