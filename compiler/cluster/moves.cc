#include "compiler/cluster/moves.h"

#include "compiler/codegen/cluster_space.h"
#include "dialects/ft/parts.h"

namespace ft::compiler {
namespace {

using namespace mlir;
using mlir::ft::BroadcastOp;
using mlir::ft::ConcatOp;
using mlir::ft::ReshapeOp;
using mlir::ft::SliceOp;
using mlir::ft::TransposeOp;

// A float that becomes a wider one, which a cluster does in a register: what it was. Else null.
Value beforeWidening(Value value) {
  Operation *op = value.getDefiningOp();
  if (!isa_and_present<mlir::ft::CopyOp, mlir::ft::ConvertOp>(op) || !isComputed(op))
    return {};
  auto from = dyn_cast<FloatType>(getElementTypeOrSelf(op->getOperand(0)));
  auto to = dyn_cast<FloatType>(getElementTypeOrSelf(value));
  return from && to && from.getWidth() < to.getWidth() ? op->getOperand(0) : Value();
}

bool movesOne(Operation *op) {
  return isa<BroadcastOp, ReshapeOp, SliceOp, TransposeOp>(op) && mayBeMember(op);
}

// Whether a parameter that `op` reads is given up before `reader`.
bool isGivenUp(Operation *op, Operation *reader) {
  return llvm::any_of(op->getOperands(), [&](Value operand) {
    mlir::ft::ViewOp view = viewOf(operand);
    return view && llvm::any_of(view.getFlat().getUsers(), [&](Operation *user) {
             return !isMemoryEffectFree(user) && op->isBeforeInBlock(user) && user->isBeforeInBlock(reader);
           });
  });
}

// Whether `reader` may read what `op` reads, in its place: of one layer and phase, so that nothing is kept
// for longer.
bool mayReadThrough(Operation *op, Operation *reader) {
  return mayBeMember(op) && mayBeMember(reader) && mlir::ft::getLayer(op) == mlir::ft::getLayer(reader) &&
         mlir::ft::getPhase(op) == mlir::ft::getPhase(reader) && !isGivenUp(op, reader);
}

void eraseIfUnread(Operation *op) {
  if (op->use_empty())
    op->erase();
}

void joinReshape(ReshapeOp op) {
  auto inner = op.getX().getDefiningOp<ReshapeOp>();
  if (!inner || !mayReadThrough(inner, op))
    return;
  op.getXMutable().assign(inner.getX());
  eraseIfUnread(inner);
  // A parameter may be given up before a reader of the copy.
  if (op.getX().getType() == op.getType() && !viewOf(op.getX()))
    op.replaceAllUsesWith(op.getX());
}

void joinSlice(SliceOp op) {
  auto inner = op.getX().getDefiningOp<SliceOp>();
  if (!inner || !mayReadThrough(inner, op))
    return;
  SmallVector<int64_t> begin;
  for (auto [outer, of] : llvm::zip_equal(op.getBegin(), inner.getBegin()))
    begin.push_back(outer + of);
  op.setBegin(begin);
  op.getXMutable().assign(inner.getX());
  eraseIfUnread(inner);
}

void joinConcat(ConcatOp op) {
  SmallVector<Value> parts;
  SmallVector<Operation *> joined;
  for (Value part : op.getParts()) {
    auto inner = part.getDefiningOp<ConcatOp>();
    if (inner && inner->hasOneUse() && mayReadThrough(inner, op) && axisOf(inner) == axisOf(op)) {
      llvm::append_range(parts, inner.getParts());
      joined.push_back(inner);
    } else {
      parts.push_back(part);
    }
  }
  op.getPartsMutable().assign(parts);
  for (Operation *inner : joined)
    inner->erase();
}

void join(Operation *op) {
  if (auto reshape = dyn_cast<ReshapeOp>(op))
    joinReshape(reshape);
  else if (auto slice = dyn_cast<SliceOp>(op))
    joinSlice(slice);
  else if (auto concat = dyn_cast<ConcatOp>(op))
    joinConcat(concat);
}

// Where elements are only moved once they are wider, they are moved before: who reads them in another cluster
// widens them there, and they go through memory as they were.
void moveBeforeWidening(Operation *op) {
  Value wide = op->getOperand(0), x = beforeWidening(wide);
  if (!x || !llvm::all_of(wide.getUsers(), movesOne) || isGivenUp(wide.getDefiningOp(), op))
    return;
  OpBuilder builder(op);
  auto type = cast<RankedTensorType>(op->getResult(0).getType());
  Operation *moved = builder.clone(*op);
  moved->setOperand(0, x);
  moved->getResult(0).setType(type.clone(getElementTypeOrSelf(x)));
  Operation *widened = builder.clone(*wide.getDefiningOp());
  widened->setOperand(0, moved->getResult(0));
  widened->getResult(0).setType(type);
  mlir::ft::setLayer(widened, mlir::ft::getLayer(op));
  mlir::ft::setPhase(widened, mlir::ft::getPhase(op).getValue());
  op->replaceAllUsesWith(widened);
  join(moved);
}

// Parts of which one is for clusters are slices, which these read where they lie.
void cutBySlices(mlir::ft::SplitOp op) {
  bool isWanted = mlir::ft::getPhase(op) && llvm::any_of(op.getResults(), [](Value part) {
                    return !part.use_empty() && llvm::all_of(part.getUsers(), mayBeMember);
                  });
  if (!isWanted)
    return;
  OpBuilder builder(op);
  for (auto [number, part] : llvm::enumerate(op.getResults())) {
    auto slice = SliceOp::create(builder, op.getLoc(), part.getType(), op.getX(),
                                 builder.getDenseI64ArrayAttr(mlir::ft::beginOf(op, number)));
    slice->setDiscardableAttrs(op->getDiscardableAttrDictionary());
    part.replaceAllUsesWith(slice.getResult());
  }
  op.erase();
}

// Whether each reader may have a copy of its own, which costs nothing: one that is no member reads the memory
// that the operand is in.
bool isFree(Operation *op) {
  if (isa<BroadcastOp>(op))
    return true;
  return isa<ReshapeOp>(op) &&
         isa_and_present<mlir::ft::KernelOpInterface>(op->getOperand(0).getDefiningOp()) &&
         !llvm::all_of(op->getUsers(), mayBeMember);
}

using OpSet = llvm::DenseSet<Operation *>;

// A reshape outside of all groups that makes the same, before `place`. Null where the group reads what is
// reshaped elsewhere, too, or others read the result.
ReshapeOp twinOf(ReshapeOp reshape, Operation *place, const OpSet &own, const OpSet &members) {
  auto isOwn = [&](Operation *user) { return own.contains(user); };
  if (!llvm::all_of(reshape->getUsers(), isOwn) || llvm::count_if(reshape.getX().getUsers(), isOwn) != 1)
    return {};
  for (Operation *user : reshape.getX().getUsers()) {
    auto other = dyn_cast<ReshapeOp>(user);
    if (other && !members.contains(other) && other.getType() == reshape.getType() &&
        other->isBeforeInBlock(place))
      return other;
  }
  return {};
}

} // namespace

void simplifyMoves(Block &block) {
  for (auto split : llvm::make_early_inc_range(block.getOps<mlir::ft::SplitOp>()))
    cutBySlices(split);
  for (Operation &op : llvm::make_early_inc_range(block)) {
    if (movesOne(&op))
      moveBeforeWidening(&op);
    join(&op);
    if (mayBeMember(&op) && op.use_empty())
      op.erase();
  }
}

void repeatForEachReader(Block &block) {
  for (Operation &op : llvm::make_early_inc_range(block)) {
    SmallVector<Operation *> readers(op.user_begin(), op.user_end());
    if (readers.size() < 2 || !isFree(&op))
      continue;
    for (Operation *reader : llvm::SetVector<Operation *>(readers.begin(), readers.end()))
      if (mayBeMember(reader) && !isGivenUp(&op, reader)) {
        OpBuilder builder(reader);
        Operation *own = builder.clone(op);
        own->setLoc(reader->getLoc());
        mlir::ft::setLayer(own, mlir::ft::getLayer(reader));
        mlir::ft::setPhase(own, mlir::ft::getPhase(reader).getValue());
        reader->replaceUsesOfWith(op.getResult(0), own->getResult(0));
      }
    if (op.use_empty())
      op.erase();
  }
}

void readReshaped(MutableArrayRef<PlacedGroup> groups) {
  OpSet members; // which may move yet
  for (const PlacedGroup &group : groups)
    members.insert(group.ops.begin(), group.ops.end());
  for (PlacedGroup &group : groups) {
    OpSet own(group.ops.begin(), group.ops.end());
    for (Operation *op : SmallVector<Operation *>(group.ops)) {
      auto reshape = dyn_cast<ReshapeOp>(op);
      ReshapeOp twin =
          reshape && op != group.place ? twinOf(reshape, group.place, own, members) : ReshapeOp();
      if (!twin)
        continue;
      reshape.replaceAllUsesWith(twin.getResult());
      llvm::erase(group.ops, op);
      own.erase(op);
      reshape.erase();
    }
  }
}

} // namespace ft::compiler
