// cluster: generated code where the plan has some for this machine, else the walker.
#include "runtime/kernels/cluster/cpu.h"

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "runtime/backends/cpu/mapped_code.h"
#include "runtime/backends/cpu/register.h"
#include "runtime/base/checked.h"
#include "runtime/kernels/cluster/cpu_walker.h"
#include "runtime/kernels/cluster/operands.h"

namespace ft::cpu {
namespace {

// rows(begin, end) for pieces of the rows, in whole blocks where blocks have partial results; then, where
// they do, chunks(begin, end) for pieces of the chunks of 64 columns.
template <typename Rows, typename Chunks>
KernelOr MakePieces(const ClusterBody& body, int num_threads, Rows rows, Chunks chunks) {
  const bool combines = body.PartialBytes() != 0;
  int64_t grain = std::max<int64_t>(1, kGrain / 2 / body.columns);
  if (combines) grain = CeilDiv(grain, body.BlockRows()) * body.BlockRows();
  const int threads = ThreadsFor(num_threads, body.rows * body.columns);
  const int64_t all_rows = body.rows, all_chunks = CeilDiv(body.columns, kClusterLanes);
  return MakeKernel([=] {
    ParallelRanges(all_rows, grain, threads, rows);
    if (combines) ParallelRanges(all_chunks, 1, threads, chunks);
  });
}

KernelOr MakeWalk(ClusterOperands operands, const KernelContext& context) {
  auto walker = std::make_shared<const ClusterWalker>(std::move(operands), context.loops);
  const ClusterBody& body = walker->body();
  return MakePieces(
      body, context.num_threads, [walker](int64_t begin, int64_t end) { walker->Rows(begin, end); },
      [walker, columns = body.columns](int64_t begin, int64_t end) {
        walker->Combine(begin * kClusterLanes, std::min(end * kClusterLanes, columns));
      });
}

}  // namespace

KernelOr MakeCluster(const KernelContext& context) {
  FT_ASSIGN_OR_RETURN(ClusterOperands operands, CheckCluster(context.operands, context.attributes));
  FT_ASSIGN_OR_RETURN(const auto code, CodeOf(*context.attributes.cluster(), context.isa));
  if (code == nullptr) return MakeWalk(std::move(operands), context);
  auto addresses = std::make_shared<const std::vector<void*>>(std::move(operands.addresses));
  return MakePieces(
      operands.body, context.num_threads,
      [code, addresses](int64_t begin, int64_t end) { code->kernel()(addresses->data(), begin, end); },
      [code, addresses](int64_t begin, int64_t end) { code->combine()(addresses->data(), begin, end); });
}

void RegisterCluster(KernelRegistry& registry, Isa isa) { Add<MakeCluster>(registry, "cluster", isa); }

}  // namespace ft::cpu
