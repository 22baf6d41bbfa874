#include "compiler/codegen/ptx/row_registers.h"

#include <algorithm>

namespace ft::compiler {
namespace {

constexpr int64_t kRegisters = 65536, kMostRegisters = 255; // of a multiprocessor, of a thread
constexpr int64_t kQuarters = 4;                            // of a multiprocessor
constexpr int64_t kOthers = 40;                             // addresses, conditions, what is computed with

// Of a thread, where so many are on a multiprocessor: of its four quarters one has a warp more, and registers
// are given out by eights.
int64_t roomOf(int64_t threads) {
  int64_t warps = llvm::divideCeil(llvm::divideCeil(threads, kWarp), kQuarters);
  return std::min(kMostRegisters, kRegisters / kQuarters / kWarp / warps / 8 * 8);
}

// Whether ptxas is told to care for one block a multiprocessor. Or else it spills a register or two where one
// more would fit. Of the largest blocks most spill where it is said, but not those that sum up rows of one
// input.
bool isForOneBlock(const ClusterBody &body, int64_t threads) {
  auto hasColumns = [](const ClusterBody::Read &read) { return read.place.column_stride != 0; };
  return threads < kMostThreads || (body.HasPartials() && llvm::count_if(body.reads, hasColumns) == 1);
}

// The grid has so many blocks for each multiprocessor that all are there at once, halves or quarters of them:
// with any other part the last ones would find it half empty.
int64_t blocksAtOnce(const ThreadPlan &plan, int64_t registers) {
  int64_t blocks = plan.blocksTogether;
  while (blocks > 1 && roomOf(plan.threads() * blocks) < registers)
    blocks /= 2;
  return blocks;
}

} // namespace

RowRegisters RowRegisters::of(const BodyFacts &facts, const ThreadPlan &plan) {
  RowRegisters result;
  const ClusterBody &body = facts.body;
  result.blocks = isForOneBlock(body, plan.threads()) ? 1 : 0;
  if (!plan.isUnrolled())
    return result;
  int64_t sums = plan.threadPacks() * kPack * static_cast<int64_t>(partialOutputsOf(body).size());
  int64_t row = 0, common = 0;
  for (auto [i, read] : llvm::enumerate(body.reads)) {
    if (read.place.column_stride != 1)
      continue;
    bool isCommon = read.place.steps.empty() && plan.rows != 1;
    int64_t words = plan.threadPacks() * kPack * static_cast<int64_t>(SizeOf(body.dtype(i))) / 4;
    (isCommon ? common : row) += isCommon ? words : plan.rowsAtOnce * words;
    (isCommon ? result.constant : result.held).push_back(i);
  }
  int64_t room = roomOf(plan.threads());
  if (!plan.flat && sums + row > room / 2)
    result.held.clear();
  // Where rows are gone through one after the other, and each is met again after the first pass.
  bool goesOn = plan.reducesRows && plan.rowsAtOnce == 1 && facts.lastLevel > 0 && !result.held.empty();
  if (!goesOn || sums + row + common > room / 2)
    result.constant.clear();
  else
    sums += common;
  result.ahead = goesOn && sums + 2 * row <= std::min(room * 5 / 8, room - 2 * kOthers);
  if (result.ahead)
    result.blocks = blocksAtOnce(plan, sums + 2 * row + kOthers);
  return result;
}

} // namespace ft::compiler
