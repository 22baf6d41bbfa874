// Checks what leaves the memory stage, from the instructions' side: each looks at the buffers that it needs.
#include "compiler/memory/passes.h"

#include "dialects/ftx/views.h"

namespace ft::compiler {

#define GEN_PASS_DEF_VERIFYLIVERANGESPASS
#include "compiler/memory/passes.h.inc"

namespace {

using namespace mlir;
using namespace mlir::ftx;

LogicalResult verifyRange(BufferOp buffer, int64_t instructions) {
  if (!buffer.getFirst())
    return buffer.emitOpError() << "'" << buffer.getName()
                                << "' has no live range; run ftx-assign-live-ranges";
  if (static_cast<int64_t>(*buffer.getLast()) >= instructions)
    return buffer.emitOpError() << "'" << buffer.getName() << "' lives to instruction " << *buffer.getLast()
                                << " of " << instructions;
  return success();
}

/// The buffers of `op` must be live at instruction `now`, where `why` happens.
LogicalResult verifyAccesses(Operation *op, uint64_t now, StringRef why) {
  LogicalResult result = success();
  forEachAccess(op, [&](Value value, bool) {
    auto buffer = value.getDefiningOp<BufferOp>();
    if (failed(result) || buffer.getPersistent() || (*buffer.getFirst() <= now && now <= *buffer.getLast()))
      return;
    result = op->emitOpError() << why << " at instruction " << now << ", outside of the life of buffer '"
                               << buffer.getName() << "', [" << *buffer.getFirst() << ", "
                               << *buffer.getLast() << "]";
  });
  return result;
}

LogicalResult verifyProgram(ProgramOp program) {
  auto instructions =
      llvm::count_if(program.getBody().front(), [](Operation &op) { return isInstruction(&op); });
  for (BufferOp buffer : program.getOps<BufferOp>())
    if (failed(verifyRange(buffer, instructions)))
      return failure();
  uint64_t now = 0;
  for (Operation &op : program.getBody().front()) {
    if (!isInstruction(&op))
      continue;
    if (failed(verifyAccesses(&op, now, "stands")))
      return failure();
    if (auto wait = dyn_cast<WaitOp>(op);
        wait && failed(verifyAccesses(wait.getToken().getDefiningOp(), now, "is waited for")))
      return failure();
    ++now;
  }
  return success();
}

struct VerifyLiveRangesPass : impl::VerifyLiveRangesPassBase<VerifyLiveRangesPass> {
  void runOnOperation() override {
    for (ProgramOp program : getOperation().getOps<ProgramOp>())
      if (failed(verifyProgram(program)))
        return signalPassFailure();
    markAllAnalysesPreserved();
  }
};

} // namespace
} // namespace ft::compiler
