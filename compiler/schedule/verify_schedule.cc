// Checks what leaves the schedule phase; see docs/decisions/live-ranges-across-streams.md for why these rules
// suffice.
#include "compiler/schedule/passes.h"

#include "dialects/ftx/views.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/MapVector.h"

namespace ft::compiler {

#define GEN_PASS_DEF_VERIFYSCHEDULEPASS
#include "compiler/schedule/passes.h.inc"

namespace {

using namespace mlir;
using namespace mlir::ftx;

StringRef nameOf(Value buffer) {
  auto definition = buffer.getDefiningOp<BufferOp>();
  return definition ? definition.getName() : "?";
}

/// Walks a program once, with the collectives that are under way.
class ProgramVerifier {
public:
  LogicalResult run(ProgramOp program) {
    for (Operation &op : program.getBody().front()) {
      if (!isInstruction(&op))
        continue;
      if (failed(verifyUnderWay(&op)) || failed(verifyContents(&op)))
        return failure();
      if (auto start = dyn_cast<StartOp>(op))
        underWay.insert({start.getToken(), start});
      else if (auto wait = dyn_cast<WaitOp>(op); wait && failed(finish(wait)))
        return failure();
    }
    if (underWay.empty())
      return success();
    return underWay.front().second.emitOpError("is never waited for on 'compute'");
  }

private:
  LogicalResult verifyUnderWay(Operation *op) {
    for (auto &[token, start] : underWay) {
      if (!conflict(op, start))
        continue;
      InFlightDiagnostic error = op->emitOpError("touches a buffer of a collective that is still under way");
      error.attachNote(start.getLoc()) << "started here";
      return error;
    }
    return success();
  }

  /// What is read has been written, and nothing touches a unit that was given up.
  LogicalResult verifyContents(Operation *op) {
    LogicalResult result = success();
    forEachAccess(op, [&](Value buffer, bool writes) {
      auto definition = buffer.getDefiningOp<BufferOp>();
      if (failed(result) || !definition || definition.getPersistent())
        return;
      if (released.contains(buffer))
        result = op->emitOpError() << "touches buffer '" << nameOf(buffer) << "' after its release";
      else if ((!writes || isa<ReleaseOp>(op)) && !written.contains(buffer))
        result = op->emitOpError() << "reads buffer '" << nameOf(buffer) << "', which nothing has written";
    });
    if (auto release = dyn_cast<ReleaseOp>(op))
      released.insert(release.getBuffer());
    forEachAccess(op, [&](Value buffer, bool writes) {
      if (writes)
        written.insert(buffer);
    });
    return result;
  }

  LogicalResult finish(WaitOp wait) {
    if (wait.getStream() != Stream::compute)
      return wait.emitOpError("must be on 'compute'");
    auto it = underWay.find(wait.getToken());
    if (it == underWay.end())
      return wait.emitOpError("waits for a collective that was waited for before");
    underWay.erase(it);
    return success();
  }

  llvm::MapVector<Value, StartOp> underWay; // by token, in the order of their starts
  llvm::DenseSet<Value> written;
  llvm::DenseSet<Value> released;
};

struct VerifySchedulePass : impl::VerifySchedulePassBase<VerifySchedulePass> {
  void runOnOperation() override {
    for (ProgramOp program : getOperation().getOps<ProgramOp>())
      if (failed(ProgramVerifier().run(program)))
        return signalPassFailure();
    markAllAnalysesPreserved();
  }
};

} // namespace
} // namespace ft::compiler
