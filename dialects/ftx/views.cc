#include "dialects/ftx/views.h"

namespace mlir::ftx {

SmallVector<View> getViews(OperandRange buffers, ArrayAttr views) {
  SmallVector<View> result;
  auto buffer = buffers.begin();
  for (auto attr : views.getAsRange<ViewAttr>()) {
    bool absent = isa<NoneType>(attr.getType());
    result.push_back({absent ? Value() : *buffer, attr.getOffset(), attr.getType(), attr.getOwn()});
    if (!absent)
      ++buffer;
  }
  return result;
}

SmallVector<Value> buffersOf(ArrayRef<View> views) {
  SmallVector<Value> result;
  for (const View &view : views)
    if (view.isPresent())
      result.push_back(view.buffer);
  return result;
}

ArrayAttr attributeOf(MLIRContext *context, ArrayRef<View> views) {
  SmallVector<Attribute> result;
  for (const View &view : views)
    result.push_back(view.isPresent() ? ViewAttr::get(context, view.offset, view.type, view.own)
                                      : ViewAttr::get(context, 0, NoneType::get(context)));
  return ArrayAttr::get(context, result);
}

bool isInstruction(Operation *op) { return isa<KernelOp, LaunchOp, StartOp, WaitOp, ReleaseOp>(op); }

void forEachAccess(Operation *op, function_ref<void(Value, bool)> visit) {
  auto visitAll = [&](OperandRange buffers, bool writes) {
    for (Value buffer : buffers)
      visit(buffer, writes);
  };
  if (auto kernel = dyn_cast<KernelOp>(op)) {
    visitAll(kernel.getIns(), /*writes=*/false);
    visitAll(kernel.getOuts(), /*writes=*/true);
    if (kernel.getWorkspace())
      visit(kernel.getWorkspace(), /*writes=*/true);
  } else if (auto launch = dyn_cast<LaunchOp>(op)) {
    visitAll(launch.getIns(), /*writes=*/false);
    visitAll(launch.getOuts(), /*writes=*/true);
  } else if (auto start = dyn_cast<StartOp>(op)) {
    visitAll(start.getIns(), /*writes=*/start.getTransfer() == Transfer::all_reduce);
    visitAll(start.getOuts(), /*writes=*/true);
  } else if (auto release = dyn_cast<ReleaseOp>(op)) {
    visit(release.getBuffer(), /*writes=*/true); // what follows may overwrite it
  }
}

llvm::DenseMap<Value, std::pair<uint32_t, uint32_t>> liveRangesOf(ProgramOp program) {
  llvm::DenseMap<Value, std::pair<uint32_t, uint32_t>> ranges;
  uint32_t number = 0;
  auto touch = [&](Value buffer, bool) {
    ranges.insert({buffer, {number, number}}).first->second.second = number;
  };
  for (Operation &op : program.getBody().front()) {
    if (!isInstruction(&op))
      continue;
    if (auto wait = dyn_cast<WaitOp>(op))
      forEachAccess(wait.getToken().getDefiningOp(), touch);
    forEachAccess(&op, touch);
    ++number;
  }
  return ranges;
}

bool conflict(Operation *a, Operation *b) {
  bool found = false;
  forEachAccess(a, [&](Value bufferOfA, bool writesA) {
    forEachAccess(
        b, [&](Value bufferOfB, bool writesB) { found |= bufferOfA == bufferOfB && (writesA || writesB); });
  });
  return found;
}

} // namespace mlir::ftx
