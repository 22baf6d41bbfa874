// A device that computes nothing and keeps simulated time: walks any plan for any world size on one machine.
//
// Streams run side by side and meet at events; how long a command takes is what its clock says. With that of
// CostClock a step takes what SimulateStep says, by the executor's own queues.
#pragma once

#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "runtime/device/device.h"
#include "runtime/plan/bind.h"
#include "runtime/plan/plan.pb.h"
#include "runtime/plan/target.h"

namespace ft {

// Seconds of a kernel, task or copy once it has its stream.
using NullClock = std::function<double(const CommandInfo& info)>;

// What an instruction of `plan` costs on `target`; what is none takes no time. All must outlive the clock.
NullClock CostClock(const proto::Plan& plan, const BoundPlan& bound, const Target& target);

class NullDevice final : public Device {
 public:
  // Without a clock nothing takes time.
  explicit NullDevice(NullClock clock = [](const CommandInfo&) { return 0.0; }) : clock_(std::move(clock)) {}

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

  // Simulated seconds so far: the latest time of any stream.
  double now() const { return now_; }

 private:
  friend class NullStream;
  const NullClock clock_;
  double now_ = 0;
};

}  // namespace ft
