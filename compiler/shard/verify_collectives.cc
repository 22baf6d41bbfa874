// Checks what leaves the shard stage; changes nothing.
#include "compiler/shard/passes.h"

#include "dialects/ft/dialect.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace ft::compiler {

#define GEN_PASS_DEF_VERIFYCOLLECTIVESPASS
#include "compiler/shard/passes.h.inc"

namespace {

using namespace mlir;
using mlir::ft::AccumulatedOp;
using mlir::ft::AccumulateOp;
using mlir::ft::AllReduceOp;
using mlir::ft::FetchOp;
using mlir::ft::FlatType;
using mlir::ft::GatherOp;
using mlir::ft::GetOp;
using mlir::ft::PackOp;
using mlir::ft::ReduceScatterOp;
using mlir::ft::ReleaseOp;
using mlir::ft::ViewOp;

// A copy of a unit has one release, and no view of it is read later.
LogicalResult verifyCopy(Operation *copy) {
  ReleaseOp release;
  for (Operation *user : copy->getResult(0).getUsers()) {
    auto op = dyn_cast<ReleaseOp>(user);
    if (op && release)
      return op.emitError() << "unit " << copy->getResult(0).getType() << " is released twice";
    if (op)
      release = op;
  }
  if (!release)
    return copy->emitError() << "gathered unit is never released";
  for (Operation *user : copy->getResult(0).getUsers()) {
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

// A flat gradient goes one way: into a reduction over the ranks, or a sum over micro-steps. Nothing else
// reads it.
LogicalResult verifyFlatGradient(Operation *op, Value flat) {
  unsigned taken = 0, strangers = 0;
  for (Operation *user : flat.getUsers()) {
    if (isa<ReduceScatterOp, AllReduceOp, AccumulateOp, AccumulatedOp>(user))
      ++taken;
    else
      ++strangers;
  }
  if (taken == 1 && strangers == 0)
    return success();
  return op->emitError() << "flat gradient must be read by one reduction over the ranks and by nothing else";
}

struct VerifyCollectivesPass : impl::VerifyCollectivesPassBase<VerifyCollectivesPass> {
  void runOnOperation() override {
    WalkResult result = getOperation().walk([](Operation *op) -> WalkResult {
      if (auto get = dyn_cast<GetOp>(op))
        return WalkResult(get.emitError() << "parameter @" << get.getParameter()
                                          << " is still read without a view of its unit");
      if (isa<GatherOp, FetchOp>(op))
        return WalkResult(verifyCopy(op));
      if (auto pack = dyn_cast<PackOp>(op); pack && pack.isOfGradients())
        return WalkResult(verifyFlatGradient(op, pack.getFlat()));
      if (auto accumulated = dyn_cast<AccumulatedOp>(op);
          accumulated && isa_and_nonnull<PackOp>(accumulated.getX().getDefiningOp()))
        return WalkResult(verifyFlatGradient(op, accumulated.getResult()));
      return WalkResult::advance();
    });
    if (result.wasInterrupted())
      signalPassFailure();
  }
};

} // namespace
} // namespace ft::compiler
