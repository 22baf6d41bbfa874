// One product as cuBLASLt wants it described.
//
// cuBLASLt's matrices are column-major. What is stored as rows of [r, s] is, column-major, its transpose
// [s, r]. So instead of c = op(a) op(b) the transpose is asked for, without moving anything:
// c^T [n, m] = op(b)^T [n, k] op(a)^T [k, m], with b as cuBLASLt's A and a as its B; an operand that is
// stored transposed is one that cuBLASLt has to transpose. cuBLASLt's bias is a column that is added to every
// column: n elements, added to every row of c. What it calls auxiliary is laid out as its result, so as c.
// Sums of an operand over k go where the bias is otherwise read.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "runtime/backends/cuda/libraries/cublaslt_api.h"
#include "runtime/backends/cuda/products.h"

namespace ft::cuda {

// That a bias, and what an epilogue keeps, begins at a multiple of this many bytes is taken for granted.
inline constexpr uint32_t kBiasAlignment = 16;
// Rows of what an epilogue keeps are multiples of this many elements.
inline constexpr int64_t kAuxiliaryRows = 8;

// Bytes, powers of two, that addresses are multiples of.
struct ProductAlignment {
  uint32_t a = 0, b = 0, c = 0;
  bool operator==(const ProductAlignment&) const = default;
};

class CublasLtCall {
 public:
  // `api` must outlive the call. Errors: InvalidArgument for what cuBLASLt has no products of.
  static absl::StatusOr<std::unique_ptr<CublasLtCall>> Create(const CublasLtApi& api, const ProductSpec& spec,
                                                              bool allow_tf32);
  ~CublasLtCall();
  CublasLtCall(const CublasLtCall&) = delete;
  CublasLtCall& operator=(const CublasLtCall&) = delete;

  // At most `count` algorithms, the one that is expected to be fastest first. Errors: InvalidArgument when
  // there is none, or none that rounds once.
  absl::StatusOr<std::vector<cublasLtMatmulAlgo_t>> Propose(cublasLtHandle_t handle,
                                                            const ProductAlignment& alignment,
                                                            uint64_t workspace_bytes, int count);

  // For one thread at a time.
  cublasStatus_t Run(cublasLtHandle_t handle, const cublasLtMatmulAlgo_t& algorithm,
                     const ProductOperands& operands, uint64_t workspace_bytes, StreamHandle stream);

 private:
  CublasLtCall(const CublasLtApi& api, const ProductSpec& spec) : api_(api), spec_(spec) {}
  absl::Status Describe(bool allow_tf32);
  absl::Status DescribeEpilogue();
  absl::Status DescribeFloat8();
  template <typename T>
  absl::Status Set(cublasLtMatmulDescAttributes_t attribute, const T& value) {
    return api_.Check(api_.set_operation(operation_, attribute, &value, sizeof(value)),
                      "cublasLtMatmulDescSetAttribute");
  }
  absl::Status AddLayout(cublasLtMatrixLayout_t& layout, cudaDataType_t type, int64_t rows, int64_t columns,
                         int64_t stride);

  const CublasLtApi& api_;
  const ProductSpec spec_;
  cublasLtMatmulDesc_t operation_ = nullptr;
  cublasLtMatrixLayout_t left_ = nullptr, right_ = nullptr, result_ = nullptr;  // of b, a, c
};

}  // namespace ft::cuda
