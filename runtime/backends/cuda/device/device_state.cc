#include "runtime/backends/cuda/device/device_state.h"

#include <atomic>
#include <utility>

namespace ft::cuda {
namespace {

std::atomic<uint64_t> num_devices = 0;
thread_local uint64_t current_device = 0;  // DeviceState::id_; 0: none yet

}  // namespace

DeviceState::DeviceState(Driver& driver, int number, ProfilerRanges* ranges)
    : driver(driver), number(number), ranges(ranges), clock(driver), id_(++num_devices) {
  current_device = 0;  // choosing this device changed what is current for CUDA
}

bool DeviceState::MakeCurrent() {
  if (current_device == id_) return true;
  if (!Check(driver.SetDevice(number))) return false;
  current_device = id_;
  return true;
}

bool DeviceState::Check(absl::Status status) {
  if (status.ok()) return true;
  failure.Set(std::move(status)).IgnoreError();
  return false;
}

}  // namespace ft::cuda
