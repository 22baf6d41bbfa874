// A communicator of the host's NCCL: who is in it, what it is busy with, and what its groups do.
#pragma once

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <future>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "runtime/base/status_macros.h"
#include "runtime/collective/communicator.h"
#include "runtime/collective/rendezvous/store.h"
#include "test/doubles/nccl/host_nccl.h"

namespace ft::testing {

struct HostNccl::Comm : std::enable_shared_from_this<Comm> {  // a stream may outlive it
  std::shared_ptr<Store> store;
  std::string key;
  int rank = 0, size = 1;
  std::unique_ptr<Communicator> inner;
  std::atomic<Communicator*> ready = nullptr;  // `inner`, for other threads
  int splits = 0;
  const Comm* parent = nullptr;      // while it is split off from that
  std::atomic<bool> failed = false;  // or aborted
  std::atomic<bool> interrupted = false;
  std::atomic<bool> calling = false;  // a group that its stream may run within the call
  bool copy_engines = false;          // for gathers in windows
  std::future<absl::Status> busy;     // making this one, splitting it, or making a window

  // Its first group was enqueued; all ranks are waited for with that; its end has been asked for.
  bool connected = false, connecting = false, finalizing = false;
  bool taken = false;  // by a group, until it was asked about that
  int questions = 0;   // that are still answered with kInProgress

  std::mutex mutex;
  std::condition_variable changed;
  int held = 0;  // groups on a stream or in a recording

  nccl::CommHandle handle() { return reinterpret_cast<nccl::CommHandle>(this); }

  // This rank has come to a place where all have to come, and whether all have. A store that is gone says
  // that its rank has ended, after all had come.
  void Come(const char* place);
  bool HaveAllCome(const char* place);

  void AbortInner();
  bool holds();
  void AwaitNoneHeld();
};

// A group of calls as long as a stream or a recording has it.
class HostNccl::Held {
 public:
  explicit Held(std::shared_ptr<Comm> comm);
  ~Held();
  Held(const Held&) = delete;
  Held& operator=(const Held&) = delete;

  Comm& comm() const { return *comm_; }

 private:
  const std::shared_ptr<Comm> comm_;
};

// Whether all ranks bring the same.
template <typename T>
absl::StatusOr<bool> AllSame(Communicator& inner, const T& own) {
  std::vector<T> all(static_cast<size_t>(inner.size()));
  FT_RETURN_IF_ERROR(inner.AllGather(&own, all.data(), sizeof(own), {"what has to be the same", 0}));
  return std::all_of(all.begin(), all.end(), [&](const T& one) { return one == own; });
}

// What a group of calls does on the stream: waits for the other ranks and moves data.
void RunGroup(HostNccl::Comm& comm, const std::vector<NcclCall>& calls);

}  // namespace ft::testing
