// Checks what leaves the optimizer stage; changes nothing and uses none of its code.
#include "compiler/optimizer/passes.h"

#include "dialects/ft/dialect.h"
#include "dialects/ft/elementwise.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/DenseSet.h"

#include <map>
#include <optional>
#include <tuple>

namespace ft::compiler {

#define GEN_PASS_DEF_VERIFYOPTIMIZERPASS
#include "compiler/optimizer/passes.h.inc"

namespace {

using namespace mlir;
using mlir::ft::ClipCoefficientOp;
using mlir::ft::CountedMeanOp;
using mlir::ft::CountTargetsOp;
using mlir::ft::InitOp;
using mlir::ft::PackOp;
using mlir::ft::ParameterOp;
using mlir::ft::SumSquaresOp;
using mlir::ft::UpdateOp;
using mlir::ft::UpdateScalarsOp;
using mlir::ft::ViewOp;

constexpr char kResults[] = "@train_step must return the loss and the gradient norm";

// One user of type Op of a flat gradient.
template <typename Op> LogicalResult findOnly(PackOp pack, Value flat, StringRef what, Op &only) {
  for (Operation *user : flat.getUsers()) {
    auto op = dyn_cast<Op>(user);
    if (!op)
      continue;
    if (only)
      return user->emitOpError("takes a flat gradient that another one has taken");
    only = op;
  }
  if (only)
    return success();
  return pack.emitError() << "no " << what << " takes this flat gradient";
}

LogicalResult verifyScalars(UpdateOp step, ClipCoefficientOp clip) {
  auto scalars = step.getScalars().getDefiningOp<UpdateScalarsOp>();
  if (scalars && scalars.getCoefficient() == clip.getCoefficient())
    return success();
  return step.emitOpError("must take scalars of the coefficient of the gradient norm");
}

// What is packed of the views of `direction`: one of each parameter of `pack`, each of an op on its view.
PackOp packedOf(Value direction, PackOp pack) {
  PackOp packed;
  for (Operation *user : direction.getUsers()) {
    auto view = dyn_cast<ViewOp>(user);
    Operation *looks = view && view->hasOneUse() ? *view->user_begin() : nullptr;
    Value directed = looks && looks->getNumResults() > 0 ? looks->getResult(0) : Value();
    if (!directed || !directed.hasOneUse())
      return {};
    packed = dyn_cast<PackOp>(*directed.user_begin());
    if (!packed || packed.getParameters() != pack.getParameters())
      return {};
    auto index = llvm::find(packed.getValues(), directed) - packed.getValues().begin();
    if (packed.getParameters()[index] != view.getParameterAttr())
      return {};
  }
  return packed && packed.getValues().size() ==
                       static_cast<size_t>(std::distance(direction.user_begin(), direction.user_end()))
             ? packed
             : PackOp();
}

// Where the update of a gradient gives a direction, one op looks at that of each parameter, and one other
// update takes what those make of it.
LogicalResult verifyDirection(UpdateOp step, PackOp pack, ClipCoefficientOp clip) {
  Value direction = step.getDirection();
  if (!direction)
    return success();
  PackOp whole = packedOf(direction, pack);
  if (!whole)
    return step.emitOpError("gives a direction, of which an op must look at each parameter");
  auto applied = whole.getFlat().hasOneUse() ? dyn_cast<UpdateOp>(*whole.getFlat().user_begin()) : UpdateOp();
  if (!applied || applied.getDirection())
    return whole.emitOpError("must be applied by one ft.update");
  return verifyScalars(applied, clip);
}

// What is read of a state that is whole is written once, behind it.
LogicalResult verifyWholeStates(func::FuncOp train) {
  using Key = std::tuple<StringRef, StringRef, mlir::ft::StateLayout>;
  std::map<Key, mlir::ft::StoreStateOp> stores;
  for (auto store : train.getOps<mlir::ft::StoreStateOp>())
    if (!stores.try_emplace({store.getUnit(), store.getState(), store.getLayout()}, store).second)
      return store.emitOpError("writes a state that another one has written");
  for (auto load : train.getOps<mlir::ft::LoadStateOp>()) {
    auto store = stores.find({load.getUnit(), load.getState(), load.getLayout()});
    if (store == stores.end() || !load->isBeforeInBlock(store->second))
      return load.emitOpError("reads a state that one ft.store_state behind it must write");
    stores.erase(store);
  }
  if (stores.empty())
    return success();
  return stores.begin()->second.emitOpError("writes a state that nothing reads");
}

// Where the loss of a rank weighs what it counts, the loss and the gradients are divided by what all of them
// count, which is the third result.
LogicalResult verifyCounted(func::FuncOp train, ClipCoefficientOp clip) {
  Operation *result = train.getBody().front().getTerminator();
  auto counted = result->getOperand(0).getDefiningOp<CountedMeanOp>();
  bool counts = !train.getOps<CountTargetsOp>().empty();
  if (!counts && !counted && !clip.getFactor() && result->getNumOperands() == 2)
    return success();
  if (counts && counted && clip.getFactor() == counted.getFactor() && result->getNumOperands() == 3 &&
      result->getOperand(2) == counted.getCount())
    return success();
  if (!counts && !counted)
    return result->emitError(kResults);
  return result->emitError("the loss counts targets, and not all that count are divided by: expected its "
                           "ft.counted_mean, the factor of that in ft.clip_coefficient and the count");
}

// What reads gradients as they were reduced over ranks multiplies them by `inverseRanks`, or all of them do
// not.
struct ReadersOfSums {
  Value inverseRanks;
  std::optional<bool> average = {};

  LogicalResult add(Operation *reader, Value factor) {
    if (factor && factor != inverseRanks)
      return reader->emitOpError("takes another factor of gradients than ft.input \"inverse_ranks\"");
    if (average.value_or(bool(factor)) != bool(factor))
      return reader->emitOpError(factor ? "makes a mean of what others take for one"
                                        : "takes for a mean what others make one of");
    average = bool(factor);
    return success();
  }
};

// Collectives sum. The loss is made a mean by a product; gradients either by all that reads them, or because
// backward begins with the mean.
LogicalResult verifyMeans(func::FuncOp train, ClipCoefficientOp clip) {
  ReadersOfSums readers;
  for (auto input : train.getOps<mlir::ft::InputOp>()) {
    if (input.getName() != mlir::ft::kInverseRanksInput)
      continue;
    if (readers.inverseRanks)
      return input.emitOpError("is there twice");
    readers.inverseRanks = input.getValue();
  }
  Operation *result = train.getBody().front().getTerminator();
  Value loss = result->getOperand(0);
  if (auto counted = loss.getDefiningOp<CountedMeanOp>())
    loss = counted.getLoss();
  auto mean = loss.getDefiningOp<mlir::ft::MulOp>();
  if (!readers.inverseRanks || !mean || mean->getOperand(1) != readers.inverseRanks)
    return result->emitError("the loss must be made a mean over ranks: a product with ft.input "
                             "\"inverse_ranks\"");
  for (auto sum : train.getOps<SumSquaresOp>())
    if (failed(readers.add(sum, sum.getFactor())))
      return failure();
  for (PackOp pack : train.getOps<PackOp>())
    for (Operation *user : mlir::ft::sumOverMicroSteps(pack.getFlat()).getUsers())
      if (auto step = dyn_cast<UpdateOp>(user); step && pack.isOfGradients())
        if (failed(readers.add(step, step.getScalars().getDefiningOp<UpdateScalarsOp>().getInverseRanks())))
          return failure();
  auto isSeed = [&](Operation *user) { return user != mean && !isa<SumSquaresOp, UpdateScalarsOp>(user); };
  auto seeds = llvm::make_filter_range(readers.inverseRanks.getUsers(), isSeed);
  bool average = readers.average.value_or(seeds.empty());
  if (average && !seeds.empty())
    return (*seeds.begin())->emitOpError("makes a mean of what the optimizer makes one of");
  if (!average && seeds.empty())
    return clip.emitOpError(
        "is of sums over ranks: neither what reads gradients nor backward divides by them");
  return success();
}

// Every flat gradient counts in the one norm, and is used by one step of the optimizer.
LogicalResult verifyStep(func::FuncOp train) {
  auto clips = train.getOps<ClipCoefficientOp>();
  if (!llvm::hasSingleElement(clips))
    return train.emitError("@train_step needs one ft.clip_coefficient: the norm is that of all gradients");
  ClipCoefficientOp clip = *clips.begin();
  llvm::SmallPtrSet<Operation *, 32> counted;
  for (Value sum = clip.getSum(); sum;) {
    auto part = sum.getDefiningOp<SumSquaresOp>();
    if (!part)
      return clip.emitOpError("takes a sum that is no chain of ft.sum_squares");
    counted.insert(part);
    sum = part.getAcc();
  }
  for (PackOp pack : train.getOps<PackOp>()) {
    if (!pack.isOfGradients())
      continue;
    Value flat = mlir::ft::sumOverMicroSteps(pack.getFlat());
    SumSquaresOp sum;
    UpdateOp step;
    if (failed(findOnly(pack, flat, "ft.sum_squares", sum)) ||
        failed(findOnly(pack, flat, "ft.update", step)))
      return failure();
    if (!counted.contains(sum))
      return sum.emitOpError("does not count in the gradient norm");
    if (failed(verifyScalars(step, clip)) || failed(verifyDirection(step, pack, clip)))
      return failure();
  }
  Operation *result = train.getBody().front().getTerminator();
  if (failed(verifyCounted(train, clip)))
    return failure();
  if (result->getOperand(1) != clip.getNorm())
    return result->emitError(kResults);
  return verifyMeans(train, clip);
}

// @init draws every parameter once.
LogicalResult verifyInit(ModuleOp module) {
  auto init = module.lookupSymbol<func::FuncOp>(mlir::ft::kInitFunction);
  if (!init)
    return module.emitError("no @init");
  llvm::DenseSet<StringRef> drawn;
  for (InitOp op : init.getOps<InitOp>()) {
    if (!drawn.insert(op.getParameter()).second)
      return op.emitOpError() << "@" << op.getParameter() << " is drawn twice";
  }
  for (ParameterOp parameter : module.getOps<ParameterOp>())
    if (!drawn.contains(parameter.getSymName()))
      return parameter.emitError() << "@init does not draw parameter @" << parameter.getSymName();
  return success();
}

struct VerifyOptimizerPass : impl::VerifyOptimizerPassBase<VerifyOptimizerPass> {
  void runOnOperation() override {
    ModuleOp module = getOperation();
    auto train = module.lookupSymbol<func::FuncOp>(mlir::ft::kTrainStepFunction);
    if (!train) {
      module.emitError("no @train_step; run ft-autodiff first");
      return signalPassFailure();
    }
    if (failed(verifyStep(train)) || failed(verifyWholeStates(train)) || failed(verifyInit(module)))
      signalPassFailure();
  }
};

} // namespace
} // namespace ft::compiler
