// NCCL between processes of one host, for runs on emulated GPUs: what is device memory there is host memory,
// and goes through this project's own shared-memory communicators. As with NCCL, ranks find each other by the
// unique id alone: it is the address of a store that rank 0 serves.
//
// Work runs when its stream runs it; an emulated stream may do so within the call. Sums are in the order of
// ranks.
#pragma once

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
  // `version` is what it says of itself, as NCCL numbers them.
  explicit HostNccl(int version = nccl::kOldestVersion);
  ~HostNccl() override;

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
  void Interrupt() override;

  struct Comm;

 private:
  nccl::Result Enqueue(nccl::CommHandle comm, CUstream_st& stream, std::vector<NcclCall> calls) override;
  Comm* NewComm();
  void Forget(Comm* comm);

  const int version_;
  std::unique_ptr<TcpStoreServer> server_;  // of rank 0
  std::mutex mutex_;
  std::set<std::shared_ptr<Comm>> comms_;
};

}  // namespace ft::testing
