// What the fake NCCL knows of its communicators, and what its kernels do.
#pragma once

#include <condition_variable>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "test/doubles/nccl/fake_nccl.h"

namespace ft::testing {

using nccl::CommHandle;
using nccl::Result;

// The ranks of a communicator.
struct FakeNccl::Clique {
  explicit Clique(int n) : size(n), from(static_cast<size_t>(n)) {}

  struct Round {  // of a collective
    std::map<int, const NcclCall*> calls;
    int computed = 0, left = 0;
  };
  struct Message {
    const NcclCall* call;
    bool taken = false;
  };
  struct Split {
    std::map<int, SplitWish> wishes;              // by rank
    std::map<int, std::shared_ptr<Clique>> made;  // by color
  };

  const int size;
  std::mutex mutex;
  std::condition_variable changed;
  int arrived = 0, finalized = 0, connected = 0;
  std::map<uint64_t, Round> rounds;
  std::map<uint64_t, Split> splits;
  std::vector<std::map<int, std::deque<Message*>>> from;  // by sender and receiver
};

struct FakeNccl::Comm {
  std::shared_ptr<Clique> clique;
  int rank;
  int world_rank;
  bool aborted = false;  // guarded by the clique's mutex
  uint64_t rounds = 0;   // of the stream's thread
  uint64_t splits = 0;
  CommHandle* split_to = nullptr;
  int split_color = 0, split_key = 0;
  bool finalizing = false, connecting = false;
  bool busy = false;  // with a group; until it was asked about it
  int questions = 0;  // that are still answered with kInProgress
  int held = 0;       // groups on a stream or in a recording; guarded by the clique's mutex

  CommHandle handle() { return reinterpret_cast<CommHandle>(this); }
};

// A group of calls as long as a stream or a recording has it.
class FakeNccl::Held {
 public:
  explicit Held(Comm& comm) : comm_(comm), clique_(comm.clique) { ++comm.held; }  // the mutex is held
  ~Held() {
    const std::lock_guard<std::mutex> lock(clique_->mutex);
    --comm_.held;
    clique_->changed.notify_all();
  }
  Held(const Held&) = delete;
  Held& operator=(const Held&) = delete;

  Comm& comm() const { return comm_; }

 private:
  Comm& comm_;
  const std::shared_ptr<Clique> clique_;
};

// What a group of calls does on the stream: waits for the other ranks and moves data. 0, or an error of a
// kernel: the ranks do not do the same.
int RunGroup(FakeNccl::Comm& comm, const std::vector<NcclCall>& calls);

}  // namespace ft::testing
