// Matrix products as the kernels of this backend want them: cuBLASLt on a GPU, plain loops in the emulation.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "runtime/backends/cuda/driver.h"
#include "runtime/backends/cuda/float8_product.h"
#include "runtime/base/dtype.h"

namespace ft::cuda {

// What becomes of each sum before it is stored, GELU in the tanh form; or what else is made of the operands.
enum class Epilogue {
  kNone,
  kGelu,      // c = GELU(x), x the sum; x to `auxiliary`, when the spec has one
  kGeluGrad,  // c = GELU'(x) times the sum, x from `auxiliary`
  kSumsOfA,   // sums[m] = the sum of op(a) over k
  kSumsOfB,   // sums[n] = the sum of op(b) over k
};

constexpr bool MakesSums(Epilogue epilogue) {
  return epilogue == Epilogue::kSumsOfA || epilogue == Epilogue::kSumsOfB;
}

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
  Epilogue epilogue = Epilogue::kNone;
  bool auxiliary = false;  // laid out as c, of its type
  // Where it is there, a and b are floats of 8 bits, as if of type `input`, times scales.
  std::optional<Float8Product> float8 = {};
  bool operator==(const ProductSpec&) const = default;
};

struct ProductOperands {
  const void *a = nullptr, *b = nullptr;
  void* c = nullptr;
  void* workspace = nullptr;       // as long as said at creation, 256-byte aligned
  const void* bias = nullptr;      // unless the spec has one, null; 16-byte aligned
  void* auxiliary = nullptr;       // the same
  const float* scale_a = nullptr;  // what a number of 8 bits counts; unless the spec has such, null
  const float* scale_b = nullptr;
  void* sums = nullptr;  // of an epilogue that makes them, of type `output`; 16-byte aligned
};

class Product {
 public:
  virtual ~Product() = default;
  // Returns a cudaError_t as int, 0 for success.
  virtual int Launch(const ProductOperands& operands, StreamHandle stream) = 0;
};

class Products {
 public:
  virtual ~Products() = default;
  // Equal specs share one product and its chosen algorithm. The operands say how those that Launch will get
  // are aligned (any addresses aligned alike) and are there for timing algorithms: they hold nothing yet
  // that counts, and afterwards zeros or what they held before. Errors: InvalidArgument for a product that
  // the library refuses.
  virtual absl::StatusOr<std::shared_ptr<Product>> Create(const ProductSpec& spec,
                                                          const ProductOperands& operands,
                                                          uint64_t workspace_bytes) = 0;

  // A product of a spec with an epilogue, or null where `apart`, which enqueues the product without it and a
  // kernel for the rest, is the better choice: the library has no such product, takes longer for it, or no
  // choice may depend on timings. GELU is of the sum before it is rounded. `apart` overwrites no more
  // than the product would, and returns a cudaError_t. Equal specs have one answer.
  virtual absl::StatusOr<std::shared_ptr<Product>> Fuse(const ProductSpec& spec,
                                                        const ProductOperands& operands,
                                                        uint64_t workspace_bytes,
                                                        absl::FunctionRef<int(StreamHandle)> apart) = 0;
};

}  // namespace ft::cuda
