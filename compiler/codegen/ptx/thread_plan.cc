#include "compiler/codegen/ptx/thread_plan.h"

namespace ft::compiler {
namespace {

constexpr int64_t kBlockThreads = 256, kMostThreads = 1024;
constexpr int64_t kUnrolledPacks = 4; // of a thread
constexpr int64_t kFewestBlockRows = 16;
constexpr int64_t kFillingThreads = 264 * 512; // of a grid: enough for 132 multiprocessors

int64_t rowThreadsOf(int64_t packs) {
  if (packs <= kWarp * kUnrolledPacks)
    return std::min<int64_t>(kWarp, llvm::PowerOf2Ceil(packs));
  int64_t threads = llvm::alignTo(llvm::divideCeil(packs, kUnrolledPacks), kWarp);
  return threads <= kMostThreads / 2 ? threads : kMostThreads;
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
    return plan;
  }
  plan.rowThreads = rowThreadsOf(plan.packs());
  plan.groups = plan.rowThreads <= kWarp ? kBlockThreads / plan.rowThreads : 1;
  plan.blockRows = plan.groups;
  if (plan.reducesRows) {
    int64_t blocks = kFillingThreads / plan.threads();
    int64_t rows = std::max(kFewestBlockRows, static_cast<int64_t>(llvm::divideCeil(plan.rows, blocks)));
    plan.blockRows = llvm::alignTo(rows, plan.groups);
  }
  return plan;
}

bool ThreadPlan::isUnrolled() const {
  // The largest blocks leave no registers for sums over rows.
  return flat || (threadPacks() <= kUnrolledPacks && !(reducesRows && rowThreads == kMostThreads));
}

int64_t ThreadPlan::blocks() const {
  return flat ? llvm::divideCeil(packs(), rowThreads) : llvm::divideCeil(rows, blockRows);
}

} // namespace ft::compiler
