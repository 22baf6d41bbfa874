// NCCL between processes or threads of one host, for tests and runs on emulated GPUs: what is device memory
// there is host memory, and goes through this project's own shared-memory communicators. One for each rank.
// As with NCCL, ranks find each other by the unique id alone: it is the address of a store that rank 0
// serves.
//
// As in NCCL calls return before the work is done, kInProgress first, and until that has been asked about the
// communicator takes no other; nothing of a communicator goes on without all of its ranks, not even the
// enqueuing of its first group, nor its orderly end; an aborted one leaves its stream idle and its peers
// waiting. Its end, also an abort, waits until the streams have passed all of its groups and no recording has
// any. A gather by copy engines (CtaPolicy::kZero, in windows) that misses a rank never ends, as on a GPU,
// where no kernel is there to be aborted.
//
// Work runs when its stream runs it; an emulated stream may do so within the call. Sums go from the last rank
// to the first, rounded to the element's type each time, so that nobody takes them for the tree's.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <set>
#include <vector>

#include "runtime/collective/communicator.h"
#include "runtime/collective/rendezvous/tcp_store_server.h"
#include "test/doubles/nccl/nccl_double.h"

namespace ft::testing {

class HostNccl final : public NcclDouble {
 public:
  // `version` is what it says of itself, as NCCL numbers them. `declines`: it makes no windows, as between
  // GPUs that do not reach each other.
  explicit HostNccl(int version = nccl::kOldestVersion, bool declines = false);
  ~HostNccl() override;

  // What its communicators tell of themselves from now on.
  void Break(nccl::Result error) { broken_ = error; }

  int world_rank() const { return world_rank_; }        // -1: it has met nobody
  int communicators();                                  // that exist
  int registrations() const { return registrations_; }  // as well
  int windows() { return CountWindows(); }              // as well
  int aborts() const { return aborts_; }                // so far
  std::vector<nccl::CtaPolicy> policies();              // of its splits so far

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
  nccl::Result CommWindowRegister(nccl::CommHandle comm, void* data, size_t bytes, nccl::WindowHandle* window,
                                  int flags) override;
  nccl::Result CommWindowDeregister(nccl::CommHandle comm, nccl::WindowHandle window) override;
  void Interrupt(nccl::CommHandle comm) override;

  struct Comm;
  class Held;

 private:
  int RanksOf(nccl::CommHandle comm) const override;
  nccl::Result Admit(nccl::CommHandle comm) override;
  nccl::Result Enqueue(nccl::CommHandle comm, CUstream_st& stream, std::vector<NcclCall> calls) override;
  Comm* NewComm();
  void Forget(Comm* comm);

  const int version_;
  const bool declines_;
  std::unique_ptr<TcpStoreServer> server_;  // of rank 0
  std::mutex mutex_;
  std::set<std::shared_ptr<Comm>> comms_;
  std::vector<nccl::CtaPolicy> policies_;
  std::atomic<nccl::Result> broken_ = nccl::kSuccess;
  std::atomic<int> world_rank_ = -1, registrations_ = 0, aborts_ = 0;
};

}  // namespace ft::testing
