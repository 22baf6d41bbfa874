// A device that computes nothing and keeps simulated time: walks any plan for any world size on one machine.
//
// The model is deliberately plain, to compare schedules rather than to predict: a kernel takes the longer of
// its FLOPs and its bytes at the machine's rates plus a launch; a collective over n ranks takes latency x
// log2(n) steps plus (n - 1)/n of its bytes at the rate of the link, twice for all_reduce; a copy a latency
// plus its bytes at the rate of copies. Streams run side by side and meet at events.
#pragma once

#include <memory>
#include <vector>

#include "runtime/device/device.h"

namespace ft {

// A nominal accelerator of an 8-GPU node on a 400 Gb/s network.
struct NullMachine {
  double flops_per_s = 100e12;
  double bytes_per_s = 2e12;
  double link_bytes_per_s = 50e9;
  double link_latency_s = 5e-6;
  double copy_bytes_per_s = 25e9;  // to and from host memory, each way
  double copy_latency_s = 10e-6;
  double launch_s = 3e-6;
};

class NullDevice final : public Device {
 public:
  explicit NullDevice(const NullMachine& machine = {}) : machine_(machine) {}

  std::string_view name() const override { return "null"; }
  bool host_accessible() const override { return false; }
  // Address space only: touching it is a fault.
  absl::StatusOr<std::unique_ptr<Memory>> Allocate(uint64_t bytes) override;
  absl::StatusOr<std::unique_ptr<Memory>> AllocateHost(uint64_t bytes) override { return Allocate(bytes); }
  absl::StatusOr<std::unique_ptr<Stream>> CreateStream(std::string name, size_t max_enqueued) override;
  std::unique_ptr<Event> CreateEvent() override;
  // Takes every kernel.
  absl::StatusOr<std::unique_ptr<Kernel>> CreateKernel(const std::string& name,
                                                       const KernelOperands& operands,
                                                       const KernelAttributes& attributes) override;
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
  const NullMachine machine_;
  double now_ = 0;
};

}  // namespace ft
