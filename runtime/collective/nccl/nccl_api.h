// The functions of NCCL that we call, as an interface: the library itself (LoadNccl), or a fake for tests.
// Names and meanings are NCCL's.
#pragma once

#include <cstddef>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "runtime/collective/nccl/nccl_abi.h"

namespace ft::nccl {

class NcclApi {
 public:
  virtual ~NcclApi() = default;

  virtual Result GetVersion(int* version) = 0;  // 22809 for 2.28.9
  virtual const char* GetErrorString(Result result) = 0;
  virtual const char* GetLastError(CommHandle comm) = 0;

  virtual Result GetUniqueId(UniqueId* id) = 0;
  virtual Result CommInitRankConfig(CommHandle* comm, int ranks, const UniqueId& id, int rank,
                                    Config* config) = 0;
  virtual Result CommSplit(CommHandle comm, int color, int key, CommHandle* made, Config* config) = 0;
  virtual Result CommFinalize(CommHandle comm) = 0;
  virtual Result CommDestroy(CommHandle comm) = 0;
  virtual Result CommAbort(CommHandle comm) = 0;
  virtual Result CommGetAsyncError(CommHandle comm, Result* error) = 0;
  virtual Result CommRegister(CommHandle comm, void* data, size_t bytes, void** registration) = 0;
  virtual Result CommDeregister(CommHandle comm, void* registration) = 0;
  // Every rank has to call it. `window` is written when the communicator is through with it, and stays null
  // where it has none.
  virtual Result CommWindowRegister(CommHandle comm, void* data, size_t bytes, WindowHandle* window,
                                    int flags) = 0;
  virtual Result CommWindowDeregister(CommHandle comm, WindowHandle window) = 0;

  // The communicator is about to be aborted: its calls, of an implementation whose calls wait, as NCCL's do
  // not, return. From any thread, also when it has gone meanwhile.
  virtual void Interrupt(CommHandle comm) {}

  virtual Result GroupStart() = 0;
  virtual Result GroupEnd() = 0;
  // `stream` is a cudaStream_t. The calls enqueue there, at the latest in GroupEnd.
  virtual Result AllGather(const void* src, void* dst, size_t count, DataType type, CommHandle comm,
                           void* stream) = 0;
  virtual Result ReduceScatter(const void* src, void* dst, size_t count, DataType type, Operation operation,
                               CommHandle comm, void* stream) = 0;
  virtual Result AllReduce(const void* src, void* dst, size_t count, DataType type, Operation operation,
                           CommHandle comm, void* stream) = 0;
  virtual Result Broadcast(const void* src, void* dst, size_t count, DataType type, int root, CommHandle comm,
                           void* stream) = 0;
  virtual Result Send(const void* src, size_t count, DataType type, int peer, CommHandle comm,
                      void* stream) = 0;
  virtual Result Recv(void* dst, size_t count, DataType type, int peer, CommHandle comm, void* stream) = 0;
};

// Loads libnccl.so.2. Errors: FailedPrecondition, one line for the user, when there is none, or one that is
// too old.
absl::StatusOr<std::shared_ptr<NcclApi>> LoadNccl();

// "2.28.9", of what GetVersion gives.
std::string VersionText(int version);

}  // namespace ft::nccl
