// One block of threads while it runs: who may run, who waits where for whom. A fiber starts thread after
// thread until one of them has to wait; then another fiber goes on. So threads that never wait cost no
// switch.
#pragma once

#include <array>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "runtime/backends/cuda/device_code/gpu.h"
#include "test/doubles/cuda/execution_model.h"
#include "test/doubles/cuda/fiber.h"
#include "test/doubles/cuda/race_watch.h"
#include "test/doubles/cuda/tensor_core.h"

namespace ft::cuda::emulation {

class Block {
 public:
  // The calling thread's.
  static Block& Own();

  // Runs all threads of the block that blockIdx names, as gridDim and blockDim say. False when threads were
  // left waiting; then `problem` tells of them.
  bool Run(const std::function<void()>& body, Order order, std::string& problem);

  int Meet(Vote vote, bool predicate, Place place);
  uint64_t Meet(const Message& message, Place place);
  unsigned lane() const { return static_cast<unsigned>(current_) % kWarp; }

  // For the watch over races, about the thread that is running.
  bool running() const { return running_ >= 0; }
  bool OnStack(const void* address) const { return fibers_[running_]->Holds(address); }
  Moment Now(uint32_t run) const {
    const int warp = current_ / kWarp;
    return {run, barriers_, warp_barriers_[warp], static_cast<int16_t>(warp), static_cast<int16_t>(current_)};
  }
  std::string WhoRuns() const;
  // Ends the block with this problem, unless there is one.
  void Blame(std::string problem) {
    if (misuse_.empty()) misuse_ = std::move(problem);
  }

 private:
  enum class State : uint8_t { kUnstarted, kRunning, kReady, kAtBarrier, kAtWarp, kExited };

  struct Thread {
    State state = State::kUnstarted;
    Place place = {nullptr, 0};
    Message message = {};
    uint64_t result = 0;
    Extent3 index = {};
    int fiber = -1;
  };

  [[noreturn]] static void FiberEntry();
  void Loop();
  void Begin(int thread);
  // The running thread waits until it is made ready.
  void Suspend();
  // The fiber that goes on when the running one cannot; -1 for Run itself, when nothing can.
  int NextFiber();
  void SwitchTo(int fiber);
  void Ready(int thread);
  bool Complete(int first, unsigned mask) const;
  void Answer(int first, unsigned mask);
  unsigned Exchange(int first, unsigned lane) const;
  void Multiply(int first) const;
  bool CanStart() const { return started_ < static_cast<int>(threads_.size()); }
  std::string Stuck() const;
  std::string Who(const Thread& thread) const;
  void Abandon();

  std::vector<Thread> threads_;
  const std::function<void()>* body_ = nullptr;
  Order order_ = Order::kAscending;
  int started_ = 0, exited_ = 0, current_ = -1;
  std::string misuse_;  // of a warp operation or of memory; ends the block

  // The barrier that gathers threads.
  int waiting_ = 0;
  Place barrier_ = {nullptr, 0};
  Vote vote_ = Vote::kNone;
  int votes_ = 0;
  bool torn_ = false;  // threads wait at different barriers

  std::array<unsigned, kWarp> at_warp_ = {};  // lanes of each warp that wait for lanes

  // Passed so far: by the block, and by all lanes of each warp.
  uint32_t barriers_ = 0;
  std::array<uint32_t, kWarp> warp_barriers_ = {};
  std::array<std::array<uint64_t, kWarp>, kWarp> said_ = {};  // by the lanes of each warp, when they met last

  std::vector<int> ready_;  // a ring of threads
  size_t ready_begin_ = 0, ready_count_ = 0;

  Fiber main_;
  std::vector<std::unique_ptr<Fiber>> fibers_;
  std::vector<int> idle_;  // fibers without a thread
  int running_ = -1;       // fiber
};

}  // namespace ft::cuda::emulation
