// Checks what leaves the schedule stage; see docs/decisions/live-ranges-across-streams.md for why these rules
// suffice.
#include "compiler/schedule/passes.h"

#include "dialects/ftx/views.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/DenseSet.h"

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
      if (auto beside = dyn_cast<BesideOpInterface>(op))
        begin(beside);
      else if (auto wait = dyn_cast<WaitOp>(op); wait && failed(finish(wait)))
        return failure();
    }
    for (auto beside : program.getOps<BesideOpInterface>())
      if (underWay.contains(beside.getToken()))
        return beside.emitOpError("is never waited for on 'compute'");
    return success();
  }

private:
  LogicalResult verifyUnderWay(Operation *op) {
    Operation *earliest = nullptr; // of those that `op` meets
    forEachAccess(op, [&](Value buffer, bool writes) {
      for (const Access &access : touched.lookup(buffer))
        if ((writes || access.writes) && (!earliest || access.start->isBeforeInBlock(earliest)))
          earliest = access.start;
    });
    if (!earliest)
      return success();
    InFlightDiagnostic error = op->emitOpError()
                               << "touches a buffer of a "
                               << (isa<LaunchOp>(earliest) ? "kernel of the host" : "collective")
                               << " that is still under way";
    error.attachNote(earliest->getLoc()) << "started here";
    return error;
  }

  void begin(BesideOpInterface beside) {
    underWay.insert({beside.getToken(), beside});
    forEachAccess(beside, [&](Value buffer, bool writes) { touched[buffer].push_back({beside, writes}); });
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
    Operation *start = it->second;
    forEachAccess(start, [&](Value buffer, bool) {
      llvm::erase_if(touched[buffer], [&](const Access &access) { return access.start == start; });
    });
    underWay.erase(it);
    return success();
  }

  struct Access {
    Operation *start;
    bool writes;
  };
  llvm::DenseMap<Value, Operation *> underWay;                 // by token
  llvm::DenseMap<Value, llvm::SmallVector<Access, 2>> touched; // by what is under way
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
