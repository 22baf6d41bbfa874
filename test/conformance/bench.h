// Where a conformance case runs: memory and kernels of a device, one at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "runtime/base/device_class.h"
#include "runtime/device/device.h"
#include "runtime/device/kernel.h"

namespace ft::conformance {

class Bench {
 public:
  virtual ~Bench() = default;

  virtual DeviceClass device_class() const = 0;
  // Bytes that the harness watches behind the end of each buffer; 0 where a tool watches them.
  virtual uint64_t guard_bytes() const { return 256; }
  virtual bool Has(const std::string& op) const = 0;

  // `alignment`: 64 or 256, and better no more: a parameter in a flat buffer is aligned to little.
  virtual absl::StatusOr<std::unique_ptr<Memory>> Allocate(uint64_t bytes, size_t alignment) = 0;
  virtual absl::Status Write(void* device_data, const void* host_data, uint64_t bytes) = 0;
  // With one byte.
  virtual absl::Status Fill(void* device_data, std::byte value, uint64_t bytes) {
    const std::vector<std::byte> values(bytes, value);
    return Write(device_data, values.data(), bytes);
  }
  virtual absl::Status Read(void* host_data, const void* device_data, uint64_t bytes) = 0;

  // Errors: NotFound without such a kernel, InvalidArgument when it refuses the operands.
  virtual absl::StatusOr<std::unique_ptr<Kernel>> Create(const std::string& op,
                                                         const KernelOperands& operands,
                                                         const KernelAttributes& attributes) = 0;
  // Returns when the results are there.
  virtual absl::Status Run(Kernel& kernel) = 0;
};

}  // namespace ft::conformance
