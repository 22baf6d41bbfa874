// Live ranges of the buffers of programs.
//
// Enters: scheduled programs. Leaves: every ftx.buffer of a program with `live [first, last]`, counted in
// instructions.
#include "compiler/memory/passes.h"

#include "dialects/ftx/views.h"

namespace ft::compiler {

#define GEN_PASS_DEF_ASSIGNLIVERANGESPASS
#include "compiler/memory/passes.h.inc"

namespace {

using namespace mlir;
using namespace mlir::ftx;

struct AssignLiveRangesPass : impl::AssignLiveRangesPassBase<AssignLiveRangesPass> {
  void runOnOperation() override {
    for (ProgramOp program : getOperation().getOps<ProgramOp>()) {
      auto ranges = liveRangesOf(program);
      for (BufferOp buffer : llvm::make_early_inc_range(program.getOps<BufferOp>())) {
        if (auto range = ranges.find(buffer); range != ranges.end()) {
          buffer.setFirst(range->second.first);
          buffer.setLast(range->second.second);
        } else {
          buffer.erase();
        }
      }
    }
  }
};

} // namespace
} // namespace ft::compiler
