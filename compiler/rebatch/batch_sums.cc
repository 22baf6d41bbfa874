#include "compiler/rebatch/batch_sums.h"

#include "dialects/ft/elementwise.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/TypeSwitch.h"

#include <cmath>

namespace ft::compiler {

using namespace mlir;
using namespace mlir::ft;

namespace {

/// How values grow: with the batch to the power of their degree.
class Degrees {
public:
  Degrees(const BatchExtents &extents, int64_t oldBatch, int64_t newBatch)
      : extents(extents), oldBatch(oldBatch), newBatch(newBatch) {}

  LogicalResult visit(Operation *op) {
    if (auto reduce = dyn_cast<ReduceOp>(op))
      return set(op, of(reduce.getX()) +
                         (reduce.getKind() == "sum" ? changing(reduce.getX(), reduce.getDims()) : 0));
    if (auto counts = dyn_cast<HistogramOp>(op))
      return of(counts.getIds()) == 0 ? set(op, extents.anyChanges(counts.getIds()) ? 1 : 0) : refuse(op);
    if (auto sums = dyn_cast<CumsumOp>(op))
      return extents.changes(lastOf(sums.getX())) ? refuse(op) : set(op, of(sums.getX()));
    if (auto sums = dyn_cast<ScatterAddElementsOp>(op)) // to rows of their own, or all to the same few
      return of(sums.getIds()) != 0 ? refuse(op)
                                    : set(op, of(sums.getX()) + (extents.changes(lastOf(sums.getX())) &&
                                                                 !extents.changes(lastOf(sums.getResult()))));
    if (auto dot = dyn_cast<DotOp>(op)) {
      int64_t summed = dot.getA().getType().getRank() - (dot.getTransposeA() ? 2 : 1);
      return set(op, of(dot.getA()) + of(dot.getB()) + (extents.changes({dot.getA(), summed}) ? 1 : 0));
    }
    if (auto product = dyn_cast<MatmulOp>(op))
      return visitProduct(product);
    if (auto shares = dyn_cast<SoftmaxOp>(op); shares && extents.changes(lastOf(shares.getX())))
      return of(shares.getX()) == 0 ? set(op, -1) : refuse(op);
    if (takesSome(op))
      return op->emitOpError(
          "keeps the batch from changing: it takes a number of rows of the batch that does not "
          "change with it");
    return visitElements(op);
  }

  int64_t of(Value value) const { return degrees.lookup(value); }
  double factor(int64_t degree) const {
    return std::pow(double(oldBatch) / double(newBatch), double(degree));
  }

private:
  static bool isFloat(Value value) {
    auto tensor = dyn_cast<RankedTensorType>(value.getType());
    return tensor && isa<FloatType>(tensor.getElementType());
  }

  int64_t changing(Value x, ArrayRef<int64_t> dims) const {
    return llvm::count_if(dims, [&](int64_t dim) { return extents.changes({x, dim}); });
  }

  // A fixed number of rows, where there would be others, or none, in another batch.
  bool takesSome(Operation *op) const {
    if (auto look = dyn_cast<EmbeddingOp>(op))
      return extents.changes({look.getTable(), 0}) && !extents.anyChanges(look.getIds());
    if (auto gather = dyn_cast<GatherElementsOp>(op))
      return extents.changes(lastOf(gather.getX())) && !extents.anyChanges(gather.getIds());
    auto sort = dyn_cast<ArgsortOp>(op);
    return sort && extents.changes(lastOf(sort.getX())) && !extents.changes(lastOf(sort.getResult()));
  }

  static Dimension lastOf(Value value) {
    return {value, cast<RankedTensorType>(value.getType()).getRank() - 1};
  }

  // Ids and places choose, however many there are.
  static bool isIds(OpOperand &operand) {
    Value value = operand.get();
    return llvm::TypeSwitch<Operation *, bool>(operand.getOwner())
        .Case<EmbeddingOp, GatherElementsOp>([&](auto op) { return op.getIds() == value; })
        .Case<GroupedDotOp>([&](auto op) { return op.getEnds() == value; })
        .Case<ArgsortOp>([](auto) { return true; }) // more of all, in the same order
        .Default(false);
  }

  LogicalResult visitProduct(MatmulOp product) {
    Value a = product.getA();
    int64_t last = cast<RankedTensorType>(a.getType()).getRank() - 1;
    int64_t summed = product.getTransposeA() ? changing(a, llvm::to_vector(llvm::seq<int64_t>(0, last)))
                                             : changing(a, {last});
    int64_t degree = of(a) + of(product.getB()) + summed;
    for (Value added : {product.getBias(), product.getAcc()})
      if (added && of(added) != degree)
        return refuse(product);
    return set(product, degree);
  }

  // What is computed element by element, what only moves elements, and all that takes no sums but as ids.
  LogicalResult visitElements(Operation *op) {
    if (isa<SelectOp>(op))
      return of(op->getOperand(0)) == 0 ? alike(op, op->getOperands().drop_front()) : refuse(op);
    if (isa<MulOp>(op))
      return set(op, of(op->getOperand(0)) + of(op->getOperand(1)));
    if (isa<DivOp>(op))
      return set(op, of(op->getOperand(0)) - of(op->getOperand(1)));
    if (isa<SquareOp>(op))
      return set(op, 2 * of(op->getOperand(0)));
    if (isa<ReciprocalOp>(op))
      return set(op, -of(op->getOperand(0)));
    if (isa<ScaleOp>(op) && of(op->getOperand(0)) != 0)
      return isFloat(op->getOperand(0)) ? rescale(op) : refuse(op);
    if (isa<EqOp, NeOp, LtOp, LeOp, GtOp, GeOp>(op)) // both grow, or neither
      return failed(alike(op, op->getOperands())) ? failure() : set(op, 0);
    const bool movesAll = op->getName().hasTrait<MovesElements>() && !isa<GatherElementsOp>(op);
    if (movesAll ||
        isa<ConvertOp, CopyOp, StopGradientOp, NegOp, AbsOp, ReluOp, AddOp, SubOp, MaximumOp, MinimumOp>(op))
      return alike(op, op->getOperands());
    for (OpOperand &operand : op->getOpOperands())
      if (of(operand.get()) != 0 && !isIds(operand))
        return refuse(op);
    return checkNumbers(op);
  }

  LogicalResult set(Operation *op, int64_t degree) {
    for (Value result : op->getResults())
      degrees[result] = degree;
    return success();
  }

  // Zero is zero with any batch.
  static bool isZero(Value value) {
    auto fill = value.getDefiningOp<FillOp>();
    return fill && fill.getValue().isZero();
  }

  LogicalResult alike(Operation *op, OperandRange operands) {
    std::optional<int64_t> degree;
    for (Value operand : operands) {
      if (isZero(operand))
        continue;
      if (degree && *degree != of(operand))
        return refuse(op);
      degree = of(operand);
    }
    return set(op, degree.value_or(0));
  }

  // One over a number of elements is one over another number.
  LogicalResult rescale(Operation *op) {
    double old = cast<ScaleOp>(op).getParameter(), scaled = old * factor(of(op->getOperand(0)));
    double elements = std::round(1 / scaled);
    const bool wereElements = 1 / std::round(1 / old) == old;
    const auto counted = static_cast<int64_t>(std::round(1 / old));
    if (wereElements && oldBatch > 2 && counted % oldBatch == oldBatch - 1)
      return op->emitOpError("keeps the batch from changing: it divides by one less than a number of rows");
    if (wereElements && std::abs(1 / scaled - elements) <= 1e-9 * std::abs(elements))
      scaled = 1 / elements;
    op->setAttr(ScaleOp::row().parameters[0], Builder(op->getContext()).getF64FloatAttr(scaled));
    return set(op, 0);
  }

  // A number of rows in arithmetic of ids would have to change with them.
  LogicalResult checkNumbers(Operation *op) {
    if (!isa<FloorDivOp, RemainderOp, ShiftOp, ScaleOp, ClampOp>(op) || isFloat(op->getResult(0)))
      return success();
    for (NamedAttribute attribute : op->getAttrs()) {
      auto number = dyn_cast<FloatAttr>(attribute.getValue());
      if (number && (isExtent(op, number.getValueAsDouble()) || isLastRow(op, number.getValueAsDouble())))
        return op->emitOpError("keeps the batch from changing: ")
               << attribute.getName() << " is a number of rows that changes with it";
    }
    return success();
  }

  // What numbers of rows are made into, such as those in reverse order.
  bool isLastRow(Operation *op, double number) const {
    return std::abs(number) > 0 && numbersRows(op->getOperand(0)) && isExtent(op, std::abs(number) + 1);
  }

  // Whether ids are numbers of rows of the batch, or computed of them.
  bool numbersRows(Value ids) const {
    llvm::SetVector<Value> reached;
    reached.insert(ids);
    for (size_t i = 0; i < reached.size(); ++i) {
      Operation *op = reached[i].getDefiningOp();
      if (!op || isFloat(reached[i]))
        continue;
      if (isa<IotaOp>(op) && extents.anyChanges(reached[i]))
        return true;
      reached.insert(op->operand_begin(), op->operand_end());
    }
    return false;
  }

  bool isExtent(Operation *op, double number) const {
    if (number <= 1)
      return false;
    auto tensor = cast<RankedTensorType>(op->getResult(0).getType());
    for (auto [i, extent] : llvm::enumerate(tensor.getShape()))
      if (extents.changes({op->getResult(0), static_cast<int64_t>(i)}) && double(extent) == number)
        return true;
    return false;
  }

  LogicalResult refuse(Operation *op) {
    return op->emitOpError("keeps the batch from changing: it takes a sum over the batch, and not evenly");
  }

  const BatchExtents &extents;
  int64_t oldBatch, newBatch;
  llvm::DenseMap<Value, int64_t> degrees; // 0 of those that are missing
};

} // namespace

LogicalResult keepMeans(func::FuncOp function, const BatchExtents &extents, int64_t oldBatch,
                        int64_t newBatch) {
  Degrees degrees(extents, oldBatch, newBatch);
  for (Operation &op : function.getBody().front().without_terminator())
    if (failed(degrees.visit(&op)))
      return failure();
  Operation *end = function.getBody().front().getTerminator();
  for (OpOperand &result : end->getOpOperands()) {
    int64_t degree = degrees.of(result.get());
    if (degree == 0)
      continue;
    OpBuilder builder(end);
    result.set(ScaleOp::create(builder, end->getLoc(), ValueRange{result.get()},
                               ArrayRef<double>{degrees.factor(degree)}));
  }
  return success();
}

} // namespace ft::compiler
