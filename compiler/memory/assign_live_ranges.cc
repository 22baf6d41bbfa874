// Live ranges of the buffers of programs.
//
// Enters: scheduled programs. Leaves: every ftx.buffer of a program with `live [first, last]`, counted in
// instructions.
#include "compiler/memory/passes.h"

#include "dialects/ftx/views.h"
#include "llvm/ADT/DenseMap.h"

namespace ft::compiler {

#define GEN_PASS_DEF_ASSIGNLIVERANGESPASS
#include "compiler/memory/passes.h.inc"

namespace {

using namespace mlir;
using namespace mlir::ftx;

struct Range {
  int64_t first;
  int64_t last;
};

class LiveRanges {
public:
  explicit LiveRanges(ProgramOp program) {
    for (Operation &op : program.getBody().front()) {
      if (!isInstruction(&op))
        continue;
      // A collective holds its buffers until it is waited for.
      if (auto wait = dyn_cast<WaitOp>(op))
        touch(wait.getToken().getDefiningOp());
      touch(&op);
      ++now;
    }
  }

  const Range *find(Value buffer) const {
    auto it = ranges.find(buffer);
    return it == ranges.end() ? nullptr : &it->second;
  }

private:
  void touch(Operation *op) {
    forEachAccess(op,
                  [&](Value buffer, bool) { ranges.insert({buffer, {now, now}}).first->second.last = now; });
  }

  llvm::DenseMap<Value, Range> ranges;
  int64_t now = 0;
};

struct AssignLiveRangesPass : impl::AssignLiveRangesPassBase<AssignLiveRangesPass> {
  void runOnOperation() override {
    for (ProgramOp program : getOperation().getOps<ProgramOp>()) {
      LiveRanges ranges(program);
      for (BufferOp buffer : llvm::make_early_inc_range(program.getOps<BufferOp>())) {
        if (const Range *range = ranges.find(buffer)) {
          buffer.setFirst(range->first);
          buffer.setLast(range->last);
        } else {
          buffer.erase();
        }
      }
    }
  }
};

} // namespace
} // namespace ft::compiler
