// embedding and embedding_grad.
#include "fmt/format.h"
#include "runtime/backends/cuda/register.h"
#include "runtime/base/cuda_workspace.h"
#include "runtime/kernels/embedding/cuda_device.h"
#include "runtime/kernels/embedding/operands.h"

namespace ft::cuda {
namespace {

// Positions are sorted by 32-bit numbers, and columns are counted by the grid's second extent.
absl::Status CheckTableExtents(int64_t positions, const Tensor& table) {
  constexpr int64_t kMostPositions = int64_t{1} << 30, kMostRows = (int64_t{1} << 31) - 1;
  constexpr int64_t kMostColumns = int64_t{65535} * 32;
  if (positions <= kMostPositions && table.rows() <= kMostRows && table.last() <= kMostColumns) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(
      fmt::format("takes at most {} ids and a table of {} rows of {} elements, got {} and {} of {}",
                  kMostPositions, kMostRows, kMostColumns, positions, table.rows(), table.last()));
}

KernelOr MakeEmbedding(const KernelContext& context) {
  FT_ASSIGN_OR_RETURN(const EmbeddingOperands read, ReadEmbedding(context.operands));
  const Tensor &ids = read.ids, &table = read.table;
  FT_RETURN_IF_ERROR(CheckTableExtents(ids.elements(), table));
  const EmbeddingArgs args = {ids.as<int32_t>(), table.data,   read.result.data, table.dtype,
                              ids.elements(),    table.rows(), table.last()};
  return MakeKernel([args](StreamHandle stream) { return Embedding(args, stream); });
}

KernelOr MakeEmbeddingGrad(const KernelContext& context) {
  FT_ASSIGN_OR_RETURN(const EmbeddingOperands read, ReadEmbeddingGrad(context.operands));
  const Tensor &ids = read.ids, &dy = read.result, &table = read.table;
  FT_RETURN_IF_ERROR(CheckTableExtents(ids.elements(), table));
  FT_RETURN_IF_ERROR(CheckWorkspace(
      context.operands, cuda_workspace::EmbeddingGrad(ids.elements(), table.rows(), table.last())));
  const EmbeddingGradArgs args = {
      ids.as<int32_t>(), dy.data,        dy.dtype,     table.data,   table.dtype,
      !read.clear,       ids.elements(), table.rows(), table.last(), context.operands.workspace.data};
  return MakeKernel([args](StreamHandle stream) { return EmbeddingGrad(args, stream); });
}

}  // namespace

void RegisterEmbedding(KernelTable& table) {
  table.Add("embedding", MakeEmbedding);
  table.Add("embedding_grad", MakeEmbeddingGrad);
}

}  // namespace ft::cuda
