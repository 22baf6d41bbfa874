// Numbers for products to be timed on.
//
// A GPU that multiplies zeros takes less power and keeps higher clocks, and not all algorithms gain alike:
// timed on a fresh arena they come out in another order than on numbers. So the operands are given values
// that are distributed as those of a model are, and set to zero again when all is timed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "runtime/backends/cuda/driver.h"
#include "runtime/backends/cuda/products.h"

namespace ft::cuda {

class SampleValues {
 public:
  // `driver` must outlive it.
  explicit SampleValues(Driver& driver) : driver_(driver) {}

  // Normally distributed values into all that a launch of `spec` reads, gaps between rows included. `stream`
  // is the one that launches. Addresses that are null are left out. Errors: the driver's.
  absl::Status Write(const ProductSpec& spec, const ProductOperands& operands, StreamHandle stream);

  // Zeroes all that Write or a launch of `spec` writes, the workspace included; waits for `stream` first.
  // Errors: as above.
  absl::Status Clear(const ProductSpec& spec, const ProductOperands& operands, uint64_t workspace_bytes,
                     StreamHandle stream);

 private:
  absl::Status Fill(const void* data, int64_t elements, DType dtype, StreamHandle stream);
  const std::vector<std::byte>& Pattern(DType dtype);

  Driver& driver_;
  std::vector<std::byte> f32_, bf16_, f16_, float8_;  // made when they are needed
};

}  // namespace ft::cuda
