// Starts what the host's step needs as early as it can be.
//
// Enters: programs in which everything that runs beside `compute` is followed by its wait. Leaves: the same
// instructions, some of them further up; a kernel of the host apart from its wait, which stays.
#include "compiler/schedule/passes.h"

#include "compiler/schedule/fetch_groups.h"

namespace ft::compiler {

#define GEN_PASS_DEF_ADVANCEHOSTSTEPPASS
#include "compiler/schedule/passes.h.inc"

namespace {

using namespace mlir;
using namespace mlir::ftx;

/// A reduced gradient that the program gives up once it is on the host.
bool isPassingGradient(Value buffer) {
  auto definition = buffer.getDefiningOp<BufferOp>();
  return definition && definition.getMemoryClass() == MemoryClass::gradients && !definition.getPersistent();
}

/// The gradient that `op` looks at, or takes to the host; null for anything else.
Value gradientReadBy(Operation *op) {
  Value gradient;
  bool writes = false;
  auto start = dyn_cast<StartOp>(op);
  if (!isa<KernelOp>(op) && !(start && start.getStream() == Stream::d2h))
    return {};
  forEachAccess(op, [&](Value buffer, bool isWrite) {
    if (!isPassingGradient(buffer))
      return;
    gradient = buffer;
    writes |= isWrite;
  });
  return writes ? Value() : gradient;
}

bool reducesGradient(Operation *op, Stream stream) {
  auto start = dyn_cast<StartOp>(op);
  return start && start.getUnit() && start.getStream() == stream;
}

/// The stream of the reduction that `wait` waits for; that of all reductions where it is another instruction.
Stream streamOf(Operation *wait) {
  auto known = dyn_cast_or_null<WaitOp>(wait);
  return known ? known.getToken().getDefiningOp<BesideOpInterface>().getStream() : Stream::reduce;
}

/// Behind the start of the reduction after the one that `gradient` comes from, on its stream: that runs
/// meanwhile. Behind the last wait for it where there is no other.
Operation *limitOf(Operation *reader, Value gradient) {
  Operation *ready = reader->getPrevNode();
  auto writes = [&](Operation *op) {
    auto wait = dyn_cast<WaitOp>(op);
    bool found = false;
    forEachAccess(wait ? wait.getToken().getDefiningOp() : op,
                  [&](Value buffer, bool isWrite) { found |= isWrite && buffer == gradient; });
    return found;
  };
  while (ready && !writes(ready))
    ready = ready->getPrevNode();
  Stream stream = streamOf(ready);
  for (Operation *op = ready ? ready->getNextNode() : reader; op != reader; op = op->getNextNode())
    if (reducesGradient(op, stream))
      return op;
  return ready;
}

/// Moves `ops`, with the buffers that they are the first to use, up to right behind one of `limits` or what
/// they conflict with.
void advance(ArrayRef<Operation *> ops, ArrayRef<Operation *> limits) {
  Operation *first = ops.front();
  Operation *place = highestPlace(ops, first, limits);
  if (place == first)
    return;
  for (Operation *op : ops) {
    for (Value operand : op->getOperands())
      if (auto buffer = operand.getDefiningOp<BufferOp>();
          buffer && buffer->getBlock() == op->getBlock() && place->isBeforeInBlock(buffer))
        buffer->moveBefore(place);
    op->moveBefore(place);
  }
}

/// Kernels in their order, and copies in theirs.
void moveReadersUp(ProgramOp program) {
  SmallVector<std::pair<Operation *, Value>> readers;
  for (Operation &op : program.getBody().front())
    if (Value gradient = gradientReadBy(&op))
      readers.push_back({&op, gradient});
  Operation *lastKernel = nullptr, *lastCopy = nullptr;
  for (auto [reader, gradient] : readers) {
    auto copy = dyn_cast<StartOp>(reader);
    Operation *&before = copy ? lastCopy : lastKernel;
    SmallVector<Operation *> ops = {reader};
    if (copy)
      ops.push_back(waitOf(copy));
    if (Operation *limit = limitOf(reader, gradient))
      advance(ops, {limit, before});
    before = ops.back();
  }
}

/// A kernel of the host moves up to where the one before the one before it is done: the host goes on at once,
/// and what kernels make on its way to the device is there for a few of them at a time.
void moveLaunchesUp(ProgramOp program) {
  SmallVector<LaunchOp> launches(program.getOps<LaunchOp>());
  for (size_t i = 1; i < launches.size(); ++i)
    advance({launches[i].getOperation()},
            {i == 1 ? launches[0].getOperation() : waitOf(launches[i - 2]).getOperation()});
}

struct AdvanceHostStepPass : impl::AdvanceHostStepPassBase<AdvanceHostStepPass> {
  void runOnOperation() override {
    for (ProgramOp program : getOperation().getOps<ProgramOp>()) {
      moveReadersUp(program);
      moveLaunchesUp(program);
    }
  }
};

} // namespace
} // namespace ft::compiler
