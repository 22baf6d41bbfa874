#include "compiler/codegen/ptx/thread_plan.h"

#include "compiler/codegen/cluster_space.h"

#include <numeric>

namespace ft::compiler {
namespace {

constexpr int64_t kBlockThreads = 256;
constexpr int64_t kUnrolledPacks = 4, kFewPacks = 2; // of a thread
constexpr int64_t kFewestBlockRows = 16, kRowsAtOnce = 4;
constexpr int64_t kSegmentThreads = 64;
// Of threads of a multiprocessor: as many as are there at once with the registers that sums over rows want,
// and twice as many where a block has many short rows.
constexpr int64_t kMultiprocessors = 132, kTogether = 512, kTogetherOfShortRows = 1024;

// Whether columns have nothing to do with each other.
bool hasColumnsAlone(const ClusterBody &body) {
  return llvm::none_of(body.ops,
                       [](const ClusterBody::Op &op) { return op.kind == ClusterBody::Op::Kind::kReduce; }) &&
         llvm::none_of(body.outputs,
                       [](const ClusterBody::Output &output) { return output.place.column_stride == 0; });
}

// Rows that a body may have in pieces have the threads of a piece: a lane has the same columns then.
int64_t rowThreadsOf(int64_t columns, int64_t packs) {
  if (mayBePieces(columns))
    return kClusterLanes / kPack;
  if (packs <= kWarp * kUnrolledPacks)
    return std::min<int64_t>(kWarp, llvm::PowerOf2Ceil(packs));
  if (packs > kMostThreads / 2 * kUnrolledPacks)
    return kMostThreads;
  // Few of a thread, so that many threads have the registers for them.
  return std::min<int64_t>(kMostThreads / 2, llvm::alignTo(llvm::divideCeil(packs, kFewPacks), kWarp));
}

} // namespace

ThreadPlan ThreadPlan::of(const ClusterBody &body) {
  ThreadPlan plan;
  plan.flat = body.IsFlat();
  plan.reducesRows = body.HasPartials();
  plan.rows = plan.flat ? 1 : body.rows;
  plan.columns = plan.flat ? body.elements() : body.columns;
  for (const ClusterBody::Op &op : body.ops)
    if (op.kind == ClusterBody::Op::Kind::kReduce && op.dtype == DType::kI64)
      plan.wordBytes = 8;
  plan.wordBytes = std::max(plan.wordBytes, body.PartialWordBytes());
  if (plan.flat) {
    plan.rowThreads = std::min<int64_t>(kBlockThreads, llvm::alignTo(plan.packs(), kWarp));
    plan.segments = llvm::divideCeil(plan.packs(), plan.rowThreads);
    return plan;
  }
  plan.rowThreads = rowThreadsOf(plan.columns, plan.packs());
  plan.groups = plan.rowThreads <= kWarp ? kBlockThreads / plan.rowThreads : 1;
  plan.blockRows = plan.groups;
  if (!plan.reducesRows)
    return plan;
  // What the shape says, whatever else the cluster does: the order of sums.
  int64_t together = plan.groups > 1 ? kTogetherOfShortRows : kTogether;
  plan.blocksTogether = std::max<int64_t>(1, together / plan.threads());
  int64_t blocks = kMultiprocessors * plan.blocksTogether;
  int64_t rows = std::max(kFewestBlockRows, static_cast<int64_t>(llvm::divideCeil(plan.rows, blocks)));
  bool many = rows >= 2 * kRowsAtOnce * plan.groups;
  plan.blockRows = llvm::alignTo(rows, many ? kRowsAtOnce * plan.groups : plan.groups);
  if (!hasColumnsAlone(body))
    return plan;
  // What is stored of a row may take the place of what is read of the next: only one at a time then.
  if (llvm::all_of(body.outputs, [](const ClusterBody::Output &output) { return output.over_rows; }))
    plan.rowsAtOnce = std::gcd(kRowsAtOnce, plan.blockRows / plan.groups);
  if (plan.groups == 1) {
    plan.rowThreads = kSegmentThreads;
    plan.segments = llvm::divideCeil(plan.packs(), plan.rowThreads);
  }
  return plan;
}

bool ThreadPlan::isUnrolled() const {
  // The largest blocks leave no registers for sums over rows.
  return threadPacks() <= kUnrolledPacks && !(reducesRows && rowThreads == kMostThreads);
}

int64_t ThreadPlan::rowBlocks() const { return llvm::divideCeil(rows, blockRows); }

int64_t ThreadPlan::blocks() const { return rowBlocks() * segments; }

} // namespace ft::compiler
