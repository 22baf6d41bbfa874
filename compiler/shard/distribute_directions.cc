#include "compiler/shard/distribute_directions.h"

#include "dialects/ft/dialect.h"
#include "llvm/ADT/MapVector.h"

namespace ft::compiler {
namespace {

using namespace mlir;
using mlir::ft::CollectOp;
using mlir::ft::DistributeOp;
using mlir::ft::OrthogonalizeOp;
using mlir::ft::PackOp;
using mlir::ft::SliceType;
using mlir::ft::UpdateOp;
using mlir::ft::ViewOp;

// How the parameters of a unit are updated: by directions of which each is orthogonalized.
struct Step {
  UpdateOp direction;
  PackOp pack;
  UpdateOp update;
};

template <typename Op> Op onlyUser(Value value) {
  return value.hasOneUse() ? dyn_cast<Op>(*value.getUsers().begin()) : Op();
}

std::optional<Step> stepOf(UpdateOp direction) {
  if (!direction.getDirection() || !isa<SliceType>(direction.getGradient().getType()))
    return std::nullopt;
  PackOp pack;
  for (Operation *user : direction.getDirection().getUsers()) {
    auto view = dyn_cast<ViewOp>(user);
    auto orthogonalized = view ? onlyUser<OrthogonalizeOp>(view.getValue()) : OrthogonalizeOp();
    auto packed = orthogonalized ? onlyUser<PackOp>(orthogonalized.getResult()) : PackOp();
    if (!packed || (pack && packed != pack))
      return std::nullopt;
    pack = packed;
  }
  auto update = pack ? onlyUser<UpdateOp>(pack.getFlat()) : UpdateOp();
  return update ? std::optional(Step{direction, pack, update}) : std::nullopt;
}

// Parameters of one shape are a group, in the order of units.
using Groups = llvm::MapVector<Type, SmallVector<Attribute>>;

Groups groupsOf(ArrayRef<Step> steps) {
  Groups groups;
  for (Step step : steps)
    for (auto [value, parameter] : llvm::zip_equal(step.pack.getValues(), step.pack.getParameters()))
      groups[value.getType()].push_back(parameter);
  return groups;
}

class Distributor {
public:
  explicit Distributor(ArrayRef<Step> steps)
      : steps(steps), last(Step(steps.back()).direction), builder(last->getContext()), loc(last->getLoc()) {
    for (const auto &[type, members] : groupsOf(steps)) {
      llvm::append_range(parameters, members);
      types.append(members.size(), type);
      groups.push_back(static_cast<int64_t>(members.size()));
    }
  }

  void run() {
    builder.setInsertionPointAfter(last);
    SmallVector<Value> directions, whole;
    SmallVector<Type> slices;
    for (Step step : steps) {
      directions.push_back(step.direction.getDirection());
      slices.push_back(step.direction.getGradient().getType());
      directions.back().setType(slices.back());
    }
    auto distribute = make<DistributeOp>(types, directions);
    for (Value value : distribute.getValues())
      whole.push_back(tagged(OrthogonalizeOp::create(builder, loc, value)).getResult());
    auto collect = make<CollectOp>(slices, whole);
    for (auto [step, slice] : llvm::zip_equal(steps, collect.getSlices()))
      update(step, slice);
  }

private:
  template <typename Op> Op tagged(Op op) {
    mlir::ft::setPhase(op, mlir::ft::kPhaseOptimizer);
    return op;
  }

  template <typename Op> Op make(TypeRange results, ValueRange operands) {
    return tagged(Op::create(builder, loc, results, operands, builder.getArrayAttr(parameters),
                             builder.getDenseI64ArrayAttr(groups)));
  }

  void update(Step step, Value slice) {
    step.update.getGradientMutable().assign(slice);
    step.update->moveBefore(builder.getInsertionBlock(), builder.getInsertionPoint());
    SmallVector<Value> values(step.pack.getValues());
    step.pack.erase();
    for (Value value : values) {
      auto orthogonalize = value.getDefiningOp<OrthogonalizeOp>();
      auto view = orthogonalize.getX().getDefiningOp<ViewOp>();
      orthogonalize.erase();
      view.erase();
    }
  }

  ArrayRef<Step> steps;
  Operation *last; // that makes a direction
  OpBuilder builder;
  Location loc;
  SmallVector<Attribute> parameters;
  SmallVector<Type> types; // of the parameters
  SmallVector<int64_t> groups;
};

} // namespace

void distributeDirections(func::FuncOp function) {
  SmallVector<Step> steps;
  for (UpdateOp update : function.getOps<UpdateOp>())
    if (std::optional<Step> step = stepOf(update))
      steps.push_back(*step);
  if (!steps.empty())
    Distributor(steps).run();
}

} // namespace ft::compiler
