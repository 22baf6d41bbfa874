// A piece of device memory that is freed when it goes.
#pragma once

#include <cstddef>
#include <utility>

#include "absl/status/statusor.h"
#include "runtime/backends/cuda/driver.h"
#include "runtime/base/status_macros.h"

namespace ft::nccl {

class DeviceMemory {
 public:
  static absl::StatusOr<DeviceMemory> Allocate(cuda::Driver& driver, size_t bytes) {
    FT_ASSIGN_OR_RETURN(void* data, driver.Malloc(bytes));
    return DeviceMemory(&driver, static_cast<std::byte*>(data), bytes);
  }
  DeviceMemory(DeviceMemory&& other) noexcept
      : driver_(other.driver_), data_(std::exchange(other.data_, nullptr)), bytes_(other.bytes_) {}
  DeviceMemory& operator=(DeviceMemory&&) = delete;
  ~DeviceMemory() {
    if (data_ != nullptr) driver_->Free(data_).IgnoreError();
  }

  std::byte* data() const { return data_; }
  size_t bytes() const { return bytes_; }

 private:
  DeviceMemory(cuda::Driver* driver, std::byte* data, size_t bytes)
      : driver_(driver), data_(data), bytes_(bytes) {}

  cuda::Driver* driver_;
  std::byte* data_;
  size_t bytes_;
};

}  // namespace ft::nccl
