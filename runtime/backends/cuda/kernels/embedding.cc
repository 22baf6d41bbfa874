// embedding and embedding_grad.
#include "runtime/backends/cuda/routines/embedding.h"

#include "fmt/format.h"
#include "runtime/backends/cuda/register.h"
#include "runtime/base/checked.h"
#include "runtime/base/cuda_workspace.h"

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
  FT_RETURN_IF_ERROR(CheckCounts(context.operands, 2, 1));
  const Tensor &ids = context.in(0), &table = context.in(1), &r = context.out(0);
  FT_RETURN_IF_ERROR(CheckPresent(ids, "ids", DType::kI32));
  FT_RETURN_IF_ERROR(CheckFloat(table, "table"));
  FT_RETURN_IF_ERROR(CheckTableExtents(ids.elements(), table));
  FT_RETURN_IF_ERROR(CheckSize(r, "result", CheckedMul(ids.elements(), table.last()), table.dtype));
  const EmbeddingArgs args = {ids.as<int32_t>(), table.data,   r.data,      table.dtype,
                              ids.elements(),    table.rows(), table.last()};
  return MakeKernel([args](StreamHandle stream) { return Embedding(args, stream); });
}

KernelOr MakeEmbeddingGrad(const KernelContext& context) {
  FT_RETURN_IF_ERROR(CheckCounts(context.operands, 3, 1));
  const Tensor &ids = context.in(0), &dy = context.in(1), &acc = context.in(2), &r = context.out(0);
  FT_RETURN_IF_ERROR(CheckPresent(ids, "ids", DType::kI32));
  FT_RETURN_IF_ERROR(CheckFloat(r, "dtable"));
  FT_RETURN_IF_ERROR(CheckTableExtents(ids.elements(), r));
  FT_RETURN_IF_ERROR(CheckFloatSize(dy, "dy", CheckedMul(ids.elements(), r.last())));
  if (acc.present()) FT_RETURN_IF_ERROR(CheckSameShape(acc, "acc", r));
  FT_RETURN_IF_ERROR(CheckAccumulator(acc, r));
  FT_RETURN_IF_ERROR(
      CheckWorkspace(context.operands, cuda_workspace::EmbeddingGrad(ids.elements(), r.rows(), r.last())));
  const EmbeddingGradArgs args = {
      ids.as<int32_t>(), dy.data,        dy.dtype, r.data,   r.dtype,
      acc.present(),     ids.elements(), r.rows(), r.last(), context.operands.workspace.data};
  return MakeKernel([args](StreamHandle stream) { return EmbeddingGrad(args, stream); });
}

}  // namespace

void RegisterEmbedding(KernelTable& table) {
  table.Add("embedding", MakeEmbedding);
  table.Add("embedding_grad", MakeEmbeddingGrad);
}

}  // namespace ft::cuda
