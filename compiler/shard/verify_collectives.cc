// Checks what leaves the shard phase; changes nothing.
#include "compiler/shard/passes.h"

#include "dialects/ft/dialect.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace ft::compiler {

#define GEN_PASS_DEF_VERIFYCOLLECTIVESPASS
#include "compiler/shard/passes.h.inc"

namespace {

using namespace mlir;
using mlir::ft::AllReduceOp;
using mlir::ft::GatherOp;
using mlir::ft::GetOp;
using mlir::ft::PackOp;
using mlir::ft::ReduceScatterOp;
using mlir::ft::ReleaseOp;
using mlir::ft::ViewOp;

// A gather has one release, and no view of it is read later.
LogicalResult verifyGather(GatherOp gather) {
  ReleaseOp release;
  for (Operation *user : gather.getFlat().getUsers()) {
    auto op = dyn_cast<ReleaseOp>(user);
    if (op && release)
      return op.emitError() << "unit " << gather.getFlat().getType() << " is released twice";
    if (op)
      release = op;
  }
  if (!release)
    return gather.emitError() << "gathered unit is never released";
  for (Operation *user : gather.getFlat().getUsers()) {
    auto view = dyn_cast<ViewOp>(user);
    if (!view)
      continue;
    for (Operation *reader : view.getValue().getUsers())
      if (release->isBeforeInBlock(reader))
        return reader->emitError() << "reads parameter @" << view.getParameter()
                                   << " after its unit was released";
  }
  return success();
}

// A flat gradient is read by exactly one reduction and by nothing else.
LogicalResult verifyPack(PackOp pack) {
  if (!pack.getFlat().hasOneUse() || !isa<ReduceScatterOp, AllReduceOp>(*pack.getFlat().user_begin()))
    return pack.emitError()
           << "flat gradient must be read by one reduction over the ranks and by nothing else";
  return success();
}

struct VerifyCollectivesPass : impl::VerifyCollectivesPassBase<VerifyCollectivesPass> {
  void runOnOperation() override {
    WalkResult result = getOperation().walk([](Operation *op) -> WalkResult {
      if (auto get = dyn_cast<GetOp>(op))
        return WalkResult(get.emitError() << "parameter @" << get.getParameter()
                                          << " is still read without a view of its unit");
      if (auto gather = dyn_cast<GatherOp>(op))
        return WalkResult(verifyGather(gather));
      if (auto pack = dyn_cast<PackOp>(op))
        return WalkResult(verifyPack(pack));
      return WalkResult::advance();
    });
    if (result.wasInterrupted())
      signalPassFailure();
  }
};

} // namespace
} // namespace ft::compiler
