#include "compiler/autodiff/moves_again.h"

#include "dialects/ft/composites.h"
#include "dialects/ft/parts.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/SetVector.h"

namespace mlir::ft {

namespace {

bool isBackward(Operation *op) { return isInPhase(op, kPhaseBackward); }

//===----------------------------------------------------------------------===//
// Parameters
//===----------------------------------------------------------------------===//

// Ops of forward that make what is a parameter but for the places of its elements, in order.
llvm::SetVector<Operation *> movesOfParameters(Block &block) {
  llvm::SetVector<Operation *> moves;
  for (Operation &op : block) {
    if (isBackward(&op) || !isa<ReshapeOp, SliceOp, TransposeOp>(op))
      continue;
    Operation *source = op.getOperand(0).getDefiningOp();
    if (source && (isa<GetOp>(source) || moves.contains(source)))
      moves.insert(&op);
  }
  return moves;
}

Operation *firstReaderInBackward(Operation *move) {
  Operation *first = nullptr;
  for (Operation *user : move->getUsers())
    if (isBackward(user) && (!first || user->isBeforeInBlock(first)))
      first = user;
  return first;
}

//===----------------------------------------------------------------------===//
// Activations
//===----------------------------------------------------------------------===//

bool cuts(Operation *op) { return isa<SliceOp, SplitOp>(op); }

// A value of forward that is a part of another, in whatever shape.
struct Part {
  Value whole;
  bool isCut; // else all of it
};

llvm::MapVector<Value, Part> partsOf(Block &block) {
  llvm::MapVector<Value, Part> parts;
  for (Operation &op : block) {
    if (isBackward(&op) || !(cuts(&op) || isa<ReshapeOp>(op)))
      continue;
    Value source = op.getOperand(0);
    if (!source.getDefiningOp() || source.getDefiningOp<GetOp>())
      continue;
    auto known = parts.find(source);
    Part part = known == parts.end() ? Part{source, cuts(&op)}
                                     : Part{known->second.whole, known->second.isCut || cuts(&op)};
    for (Value result : op.getResults())
      parts[result] = part;
  }
  return parts;
}

SmallVector<OpOperand *> readsInBackward(Value value) {
  SmallVector<OpOperand *> reads;
  for (OpOperand &use : value.getUses())
    if (isBackward(use.getOwner()))
      reads.push_back(&use);
  return reads;
}

// Of each whole the parts that are worth it.
llvm::MapVector<Value, SmallVector<Value>> partsToCutAgain(const llvm::MapVector<Value, Part> &parts) {
  llvm::MapVector<Value, SmallVector<Value>> byWhole;
  for (auto &[value, part] : parts) {
    SmallVector<OpOperand *> reads = readsInBackward(value);
    if (part.isCut && !reads.empty() &&
        llvm::all_of(reads, [](OpOperand *read) { return isOfClusters(read->getOwner()); }))
      byWhole[part.whole].push_back(value);
  }
  byWhole.remove_if([](auto &entry) {
    int64_t elements = 0;
    for (Value value : entry.second)
      elements += verify::tensor(value).getNumElements();
    return elements < verify::tensor(entry.first).getNumElements() && readsInBackward(entry.first).empty();
  });
  return byWhole;
}

Value madeAgain(OpBuilder &builder, Value value, const llvm::MapVector<Value, Part> &parts,
                StringAttr layer) {
  if (!parts.contains(value))
    return value;
  Operation *op = value.getDefiningOp();
  Value source = madeAgain(builder, op->getOperand(0), parts, layer);
  Operation *again = nullptr;
  if (auto split = dyn_cast<SplitOp>(op)) {
    unsigned part = cast<OpResult>(value).getResultNumber();
    again = SliceOp::create(builder, op->getLoc(), value.getType(), source,
                            builder.getDenseI64ArrayAttr(beginOf(split, part)));
  } else {
    again = builder.clone(*op);
    again->setOperand(0, source);
  }
  setPhase(again, kPhaseBackward);
  setLayer(again, layer);
  return again->getResult(0);
}

} // namespace

void moveParametersAgain(Block &block) {
  llvm::SetVector<Operation *> moves = movesOfParameters(block);
  // From the last on: a move that is made again reads those before it in backward.
  for (Operation *move : llvm::reverse(moves)) {
    Operation *first = firstReaderInBackward(move);
    if (!first)
      continue;
    OpBuilder builder(first);
    Operation *again = builder.clone(*move);
    setPhase(again, kPhaseBackward);
    setLayer(again, getLayer(first));
    move->getResult(0).replaceUsesWithIf(again->getResult(0), [&](OpOperand &use) {
      return use.getOwner() != again && isBackward(use.getOwner());
    });
  }
}

void cutActivationsAgain(Block &block) {
  llvm::MapVector<Value, Part> parts = partsOf(block);
  for (auto &[whole, cut] : partsToCutAgain(parts))
    for (Value value : cut)
      for (OpOperand *read : readsInBackward(value)) {
        OpBuilder builder(read->getOwner());
        read->set(madeAgain(builder, value, parts, getLayer(read->getOwner())));
      }
}

} // namespace mlir::ft
