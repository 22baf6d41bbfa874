// Matrix products by plain loops: each sum in f64, rounded to f32 and then to the type of c.
#pragma once

#include "runtime/backends/cuda/products.h"

namespace ft::cuda::emulation {

class ReferenceProducts final : public Products {
 public:
  // Errors: InvalidArgument for extents or strides that make no sense, types that products are not made of,
  // addresses that are not aligned to their elements.
  absl::StatusOr<std::shared_ptr<Product>> Create(const ProductSpec& spec, const void* a, const void* b,
                                                  void* c, void* workspace,
                                                  uint64_t workspace_bytes) override;
};

}  // namespace ft::cuda::emulation
