// A device that computes nothing and keeps simulated time: walks any plan for any world size on one machine.
//
// What was enqueued is played when a stream is synchronized (runtime/cost/replay.h): streams run side by
// side, slow each other down and meet at events. With the clock of CostClock a step takes what SimulateStep
// says, by the executor's own queues.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "runtime/cost/replay.h"
#include "runtime/device/device.h"
#include "runtime/plan/bind.h"
#include "runtime/plan/plan.pb.h"
#include "runtime/plan/target.h"

namespace ft {

// What a kernel, task or copy costs, and when it can begin at the earliest, in seconds from the beginning of
// its program.
struct NullWork {
  InstructionCost cost;
  double launched_s = 0;
};
using NullClock = std::function<NullWork(const CommandInfo& info)>;

// What an instruction of `plan` costs on `target`; what is none takes no time. Nothing has to outlive it.
NullClock CostClock(const proto::Plan& plan, const BoundPlan& bound, const Target& target);

class NullStream;

class NullDevice final : public Device {
 public:
  // Without a clock nothing takes time.
  explicit NullDevice(NullClock clock = [](const CommandInfo&) { return NullWork(); })
      : clock_(std::move(clock)) {}

  std::string_view name() const override { return "null"; }
  bool host_accessible() const override { return false; }
  // Address space only: touching it is a fault.
  absl::StatusOr<std::unique_ptr<Memory>> Allocate(uint64_t bytes) override;
  absl::StatusOr<std::unique_ptr<Memory>> AllocateHost(uint64_t bytes) override { return Allocate(bytes); }
  absl::StatusOr<std::unique_ptr<Stream>> CreateStream(std::string name, size_t max_enqueued) override;
  std::unique_ptr<Event> CreateEvent() override;
  // Takes every kernel, of the host's too.
  absl::StatusOr<std::unique_ptr<Kernel>> CreateKernel(const std::string& name,
                                                       const KernelOperands& operands,
                                                       const KernelAttributes& attributes) override;
  absl::StatusOr<std::unique_ptr<Kernel>> CreateHostKernel(const std::string& name,
                                                           const KernelOperands& operands,
                                                           const KernelAttributes& attributes) override {
    return CreateKernel(name, operands, attributes);
  }
  absl::Status Write(void* device_data, const void* host_data, uint64_t bytes) override {
    return absl::OkStatus();
  }
  absl::Status Read(void* host_data, const void* device_data, uint64_t bytes) override {
    return absl::OkStatus();
  }
  absl::Status status() const override { return absl::OkStatus(); }
  void Cancel(const absl::Status& reason) override {}

  // Simulated seconds so far, until all that was enqueued before the last Synchronize was done.
  double now() const { return now_; }

 private:
  friend class NullStream;

  // Plays what was enqueued on all streams, from now on.
  void Play();

  const NullClock clock_;
  double now_ = 0;
  std::vector<NullStream*> streams_;  // by number; those that are gone are null
  std::vector<ReplayItem> enqueued_;
  std::vector<const Command*> commands_;  // of each
  int64_t plays_ = 0;                     // so far: events recorded before have passed
};

}  // namespace ft
