// Matrix products by plain loops: each sum in f64, rounded to f32 and then to the type of c.
#pragma once

#include "runtime/backends/cuda/products.h"

namespace ft::cuda::emulation {

class ReferenceProducts final : public Products {
 public:
  // `fuses`: Fuse has a product where cuBLASLt could have one, else never.
  explicit ReferenceProducts(bool fuses = false) : fuses_(fuses) {}
  // Errors: InvalidArgument for extents or strides that make no sense, types that products are not made of,
  // addresses that are not aligned to their elements.
  absl::StatusOr<std::shared_ptr<Product>> Create(const ProductSpec& spec, const ProductOperands& operands,
                                                  uint64_t workspace_bytes) override;
  absl::StatusOr<std::shared_ptr<Product>> Fuse(const ProductSpec& spec, const ProductOperands& operands,
                                                uint64_t workspace_bytes,
                                                absl::FunctionRef<int(StreamHandle)> apart) override;

 private:
  bool fuses_;
};

}  // namespace ft::cuda::emulation
