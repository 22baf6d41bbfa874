#include "compiler/shard/insert_reductions.h"

#include "compiler/shard/tags.h"
#include "dialects/ft/elementwise.h"

namespace ft::compiler {
namespace {

using namespace mlir;
using mlir::ft::AccumulatedOp;
using mlir::ft::AccumulateOp;
using mlir::ft::AllReduceOp;
using mlir::ft::Axis;
using mlir::ft::CountedMeanOp;
using mlir::ft::FlatType;
using mlir::ft::GatherOp;
using mlir::ft::InputOp;
using mlir::ft::MulOp;
using mlir::ft::PackOp;
using mlir::ft::ReduceScatterOp;
using mlir::ft::RefreshOp;
using mlir::ft::ReleaseOp;
using mlir::ft::ResidencyAttr;
using mlir::ft::SliceType;
using mlir::ft::SumSquaresOp;
using mlir::ft::UnitOp;
using mlir::ft::UpdateOp;

Value reduceOver(OpBuilder &builder, Value value, Axis axis, Operation *like) {
  auto op = AllReduceOp::create(builder, value.getLoc(), value.getType(), value, axis);
  tagLike(op, like);
  return op.getResult();
}

// The sum over all ranks of the flat gradient `flat`, or this rank's slice of it.
Value reduce(OpBuilder &builder, Value flat, Axes axes, Extent reduced) {
  Operation *like = flat.getDefiningOp();
  if (reduced == Extent::whole)
    return reduceOver(builder, flat, Axis::replica, like);
  auto type = cast<FlatType>(flat.getType());
  auto slice = SliceType::get(builder.getContext(), type.getUnit(), type.getElementType());
  auto scatter = ReduceScatterOp::create(builder, like->getLoc(), slice, flat);
  tagLike(scatter, like);
  if (axes == Axes::Shard)
    return scatter.getSlice();
  return reduceOver(builder, scatter.getSlice(), Axis::replica, like);
}

// `value` over all ranks of `axis`, right after it is known.
AllReduceOp reduced(Value value, Axis axis, StringRef phase) {
  OpBuilder builder(value.getContext());
  builder.setInsertionPointAfterValue(value);
  auto reduction = AllReduceOp::create(builder, value.getLoc(), value.getType(), value, axis);
  mlir::ft::setPhase(reduction, phase);
  return reduction;
}

// Every other use sees the result.
void reduceValue(Value value, Axis axis, StringRef phase) {
  AllReduceOp reduction = reduced(value, axis, phase);
  value.replaceAllUsesExcept(reduction.getResult(), reduction);
}

// The product by which the sum of the loss over ranks becomes its mean sees the sum. Backward, which may read
// the loss itself, goes on with that of its rank.
void reduceLoss(Value mean) {
  auto product = mean.getDefiningOp<MulOp>();
  auto input = product ? product->getOperand(1).getDefiningOp<InputOp>() : InputOp();
  if (!input || input.getName() != mlir::ft::kInverseRanksInput)
    return reduceValue(mean, Axis::world, mlir::ft::kPhaseForward);
  product->setOperand(0, reduced(product->getOperand(0), Axis::world, mlir::ft::kPhaseForward).getResult());
}

// The last op that reads a view of a flat buffer.
Operation *lastReader(Value flat) {
  Operation *last = nullptr;
  for (Operation *view : flat.getUsers())
    for (Operation *reader : view->getUsers())
      if (!last || last->isBeforeInBlock(reader))
        last = reader;
  return last;
}

// Where gradients are slices, so is the direction that is made of them; what looks at parameters whole reads
// views of a gathered copy.
void gatherDirection(UpdateOp update) {
  auto slice = dyn_cast<SliceType>(update.getGradient().getType());
  Value direction = update.getDirection();
  auto flat = dyn_cast<FlatType>(direction.getType());
  if (!slice || !flat)
    return;
  direction.setType(slice);
  OpBuilder builder(update.getContext());
  builder.setInsertionPointAfter(update);
  auto gather = GatherOp::create(builder, update.getLoc(), flat, direction);
  tagLike(gather, update);
  direction.replaceAllUsesExcept(gather.getFlat(), gather);
  builder.setInsertionPointAfter(lastReader(gather.getFlat()));
  auto release = ReleaseOp::create(builder, update.getLoc(), gather.getFlat());
  release->setDiscardableAttrs(update->getDiscardableAttrDictionary());
}

} // namespace

void reduceGradients(func::FuncOp function, Axes axes, SymbolTable &symbols, bool each) {
  for (PackOp pack : llvm::make_early_inc_range(function.getOps<PackOp>())) {
    Value flat = pack.getFlat();
    mlir::ft::MicroStepSumOpInterface sum = mlir::ft::microStepSumOf(flat);
    if (!pack.isOfGradients() || (!each && isa_and_nonnull<AccumulateOp>(sum.getOperation())))
      continue;
    auto accumulated = dyn_cast_or_null<AccumulatedOp>(sum.getOperation());
    if (accumulated && !each)
      flat = accumulated.getResult();
    OpBuilder builder(pack.getContext());
    builder.setInsertionPointAfterValue(flat);
    auto unit = symbols.lookup<UnitOp>(cast<FlatType>(flat.getType()).getUnit().getValue());
    Value reduced = reduce(builder, flat, axes, unit.residencyOrWhole().getOptimizer());
    flat.replaceUsesWithIf(reduced, [&](OpOperand &use) {
      Operation *owner = use.getOwner();
      return !isa<ReduceScatterOp>(owner) && owner != reduced.getDefiningOp();
    });
    if (accumulated && each) // what is accumulated is reduced already
      accumulated.getResult().setType(accumulated.getX().getType());
  }
}

void gatherUpdated(func::FuncOp function, SymbolTable &symbols) {
  for (UpdateOp step : llvm::make_early_inc_range(function.getOps<UpdateOp>())) {
    if (step.getDirection()) {
      gatherDirection(step);
      continue;
    }
    ResidencyAttr residency = symbols.lookup<UnitOp>(step.getUnit()).residencyOrWhole();
    if (residency.getParameters() != Extent::whole || residency.getOptimizer() != Extent::slice)
      continue;
    OpBuilder builder(step->getContext());
    builder.setInsertionPointAfter(step);
    auto refresh = RefreshOp::create(builder, step.getLoc(), step.getUnitAttr());
    tagLike(refresh, step);
  }
}

void reduceScalars(func::FuncOp function, Axes axes) {
  Operation *terminator = function.getBody().front().getTerminator();
  if (function.getSymName() == mlir::ft::kEvalStepFunction)
    for (OpOperand &sum : terminator->getOpOperands())
      reduceValue(sum.get(), Axis::world, mlir::ft::kPhaseForward);
  if (function.getSymName() != mlir::ft::kTrainStepFunction)
    return;
  Value mean = terminator->getOperand(0);
  if (auto counted = mean.getDefiningOp<CountedMeanOp>()) {
    mean = counted.getLoss();
    reduceValue(counted.getCount(), Axis::world, mlir::ft::kPhaseForward);
  }
  reduceLoss(mean);
  SumSquaresOp last;
  for (SumSquaresOp op : function.getOps<SumSquaresOp>())
    last = op;
  if (last && axes != Axes::Replica)
    reduceValue(last.getSum(), Axis::shard, mlir::ft::kPhaseOptimizer);
}

} // namespace ft::compiler
