// Matrix products as the kernels of this backend want them: cuBLASLt on a GPU, plain loops in the emulation.
#pragma once

#include <cstdint>
#include <memory>

#include "absl/status/statusor.h"
#include "runtime/backends/cuda/driver.h"
#include "runtime/base/dtype.h"

namespace ft::cuda {

// Row-major: c[m, n] = (accumulate ? c : 0) + op(a) op(b) + bias, op(a) [m, k], op(b) [k, n]; a is stored as
// [k, m] when transpose_a, b as [n, k] when transpose_b. Sums are f32.
struct ProductSpec {
  int64_t m = 0, n = 0, k = 0;
  bool transpose_a = false, transpose_b = false;
  int64_t row_a = 0, row_b = 0, row_c = 0;  // elements from one stored row to the next
  DType input = DType::kF32;                // of a and b
  DType output = DType::kF32;               // of c
  bool accumulate = false;
  bool bias = false;  // bias[n], of type `input`, added to every row
  bool operator==(const ProductSpec&) const = default;
};

class Product {
 public:
  virtual ~Product() = default;
  // `bias` null unless the spec has one, 16-byte aligned; `workspace` as long as said at creation, 256-byte
  // aligned. Returns a cudaError_t as int, 0 for success.
  virtual int Launch(const void* a, const void* b, void* c, const void* bias, void* workspace,
                     StreamHandle stream) = 0;
};

class Products {
 public:
  virtual ~Products() = default;
  // Equal specs share one product and its chosen algorithm. a, b, c say how the addresses that Launch will
  // get are aligned (any addresses aligned alike) and are scratch for timing algorithms: c is overwritten.
  // Errors: InvalidArgument for a product that the library refuses.
  virtual absl::StatusOr<std::shared_ptr<Product>> Create(const ProductSpec& spec, const void* a,
                                                          const void* b, void* c, void* workspace,
                                                          uint64_t workspace_bytes) = 0;
};

}  // namespace ft::cuda
