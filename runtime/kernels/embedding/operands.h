// What the kernels of embeddings take. Each is read and checked once, for all devices; errors are
// InvalidArgument.
#pragma once

#include "absl/status/statusor.h"
#include "runtime/device/kernel.h"

namespace ft {

struct EmbeddingOperands {
  Tensor ids;     // [...], i32; one outside the table gives NaN, and no gradient
  Tensor table;   // [vocabulary, columns], of any type that is computed with; of the gradient what is written
  Tensor result;  // [..., columns], of the table's type; of the gradient dy, of any such type
  bool clear = true;  // of the gradient: else it is added to the table
};
absl::StatusOr<EmbeddingOperands> ReadEmbedding(const KernelOperands& operands);
absl::StatusOr<EmbeddingOperands> ReadEmbeddingGrad(const KernelOperands& operands);

}  // namespace ft
