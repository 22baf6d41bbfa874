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
    const bool readsShares = llvm::any_of(op->getOperands(), [&](Value value) { return isShare(value); });
    if (readsShares && !isLinear(op))
      return refuse(op);
    if (failed(visitAny(op)))
      return failure();
    for (Value result : op->getResults())
      if (readsShares && of(result) < 0)
        shares.insert(result);
    return success();
  }

  int64_t of(Value value) const { return sums.lookup(value).degree; }
  double factor(int64_t degree) const {
    return std::pow(double(oldBatch) / double(newBatch), double(degree));
  }

private:
  struct Sum {
    int64_t degree = 0;
    double terms = 1;     // that were added up for an element; 0 is not known
    bool ofBatch = false; // it has rows of the batch among them
  };

  LogicalResult visitAny(Operation *op) {
    if (auto reduce = dyn_cast<ReduceOp>(op))
      return visitReduction(reduce);
    if (auto counts = dyn_cast<HistogramOp>(op))
      return of(counts.getIds()) == 0 ? set(op, extents.anyChanges(counts.getIds()) ? 1 : 0) : refuse(op);
    if (auto running = dyn_cast<CumsumOp>(op))
      return extents.changes(lastOf(running.getX())) ? refuse(op) : set(op, of(running.getX()));
    if (auto added = dyn_cast<ScatterAddElementsOp>(op)) // to rows of their own, or all to the same few
      return of(added.getIds()) != 0
                 ? refuse(op)
                 : set(op, of(added.getX()) + (extents.changes(lastOf(added.getX())) &&
                                               !extents.changes(lastOf(added.getResult()))));
    if (auto dot = dyn_cast<DotOp>(op)) {
      int64_t summed = dot.getA().getType().getRank() - (dot.getTransposeA() ? 2 : 1);
      return setProduct(op, dot.getA(), dot.getB(), {summed});
    }
    if (auto product = dyn_cast<MatmulOp>(op))
      return visitProduct(product);
    if (auto softmax = dyn_cast<SoftmaxOp>(op); softmax && extents.changes(lastOf(softmax.getX()))) {
      shares.insert(softmax.getResult());
      return of(softmax.getX()) == 0 ? set(op, -1) : refuse(op);
    }
    if (takesSome(op))
      return op->emitOpError(
          "keeps the batch from changing: it takes a number of rows of the batch that does not "
          "change with it");
    return visitElements(op);
  }

  static bool isFloat(Value value) {
    auto tensor = dyn_cast<RankedTensorType>(value.getType());
    return tensor && isa<FloatType>(tensor.getElementType());
  }

  bool isShare(Value value) const { return shares.contains(value); }
  double termsOf(Value value) const { return sums.lookup(value).terms; }
  bool isOfBatch(Value value) const { return sums.lookup(value).ofBatch; }

  static double extentOf(Dimension dimension) {
    auto [value, dim] = dimension;
    return double(cast<RankedTensorType>(value.getType()).getDimSize(unsigned(dim)));
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
    auto summed =
        product.getTransposeA() ? llvm::to_vector(llvm::seq<int64_t>(0, last)) : SmallVector<int64_t>{last};
    if (failed(setProduct(product, a, product.getB(), summed)))
      return failure();
    for (Value added : {product.getBias(), product.getAcc()})
      if (added && of(added) != of(product.getResult()))
        return refuse(product);
    return success();
  }

  // Sums over what does not change with the batch are weighted sums; those over it have terms.
  LogicalResult setProduct(Operation *op, Value a, Value b, ArrayRef<int64_t> summed) {
    int64_t degree = of(a) + of(b) + changing(a, summed);
    double terms = termsOf(a) * termsOf(b);
    for (int64_t dim : summed)
      terms *= extents.changes({a, dim}) ? extentOf({a, dim}) : 1;
    return set(op, degree, terms, isOfBatch(a) || isOfBatch(b) || changing(a, summed) > 0);
  }

  LogicalResult visitReduction(ReduceOp reduce) {
    Value x = reduce.getX();
    if (reduce.getKind() != "sum")
      return set(reduce, of(x), termsOf(x), isOfBatch(x));
    double terms = termsOf(x);
    for (int64_t dim : reduce.getDims())
      terms *= extentOf({x, dim});
    int64_t rows = changing(x, reduce.getDims());
    return set(reduce, of(x) + rows, terms, isOfBatch(x) || rows > 0);
  }

  // Of a softmax over the batch, whose sum is 1: what is linear in its elements grows as that does.
  bool isLinear(Operation *op) const {
    auto count = llvm::count_if(op->getOperands(), [&](Value value) { return isShare(value); });
    if (auto reduce = dyn_cast<ReduceOp>(op))
      return reduce.getKind() == "sum";
    if (isa<DotOp, MatmulOp, MulOp>(op))
      return count == 1;
    if (isa<DivOp, SelectOp>(op))
      return !isShare(op->getOperand(isa<DivOp>(op) ? 1 : 0));
    return (op->hasTrait<MovesElements>() && !isa<GatherElementsOp>(op)) ||
           isa<AddOp, ConvertOp, CopyOp, NegOp, ScaleOp, StopGradientOp, SubOp>(op);
  }

  // What is computed element by element, what only moves elements, and all that takes no sums but as ids.
  LogicalResult visitElements(Operation *op) {
    if (isa<SelectOp>(op))
      return of(op->getOperand(0)) == 0 ? alike(op, op->getOperands().drop_front()) : refuse(op);
    Value x = op->getNumOperands() > 0 ? op->getOperand(0) : Value();
    if (isa<MulOp>(op))
      return set(op, of(x) + of(op->getOperand(1)), termsOf(x) * termsOf(op->getOperand(1)),
                 isOfBatch(x) || isOfBatch(op->getOperand(1)));
    if (isa<DivOp>(op)) // by a sum over the batch: a share of it
      return set(op, of(x) - of(op->getOperand(1)), of(x) < of(op->getOperand(1)) ? termsOf(x) : 0);
    if (isa<SquareOp>(op))
      return set(op, 2 * of(x), termsOf(x) * termsOf(x), isOfBatch(x));
    if (isa<ReciprocalOp>(op))
      return set(op, -of(x), of(x) > 0 ? 1 : 0);
    if (isa<ScaleOp>(op) && isFloat(x) && !isShare(x))
      return rescale(op);
    if (isa<ScaleOp>(op) && of(x) != 0)
      return isFloat(x) ? alike(op, op->getOperands()) : refuse(op);
    if (isa<EqOp, NeOp, LtOp, LeOp, GtOp, GeOp>(op)) // both grow, or neither
      return failed(alike(op, op->getOperands())) || failed(checkRows(op)) ? failure() : set(op, 0);
    if (failed(checkRows(op)))
      return failure();
    const bool movesAll = op->getName().hasTrait<MovesElements>() && !isa<GatherElementsOp>(op);
    if (movesAll ||
        isa<ConvertOp, CopyOp, StopGradientOp, NegOp, AbsOp, ReluOp, AddOp, SubOp, MaximumOp, MinimumOp>(op))
      return alike(op, op->getOperands());
    for (OpOperand &operand : op->getOpOperands())
      if (of(operand.get()) != 0 && !isIds(operand))
        return refuse(op);
    return checkNumbers(op);
  }

  LogicalResult set(Operation *op, int64_t degree, double terms = 1, bool ofBatch = false) {
    for (Value result : op->getResults())
      sums[result] = {degree, terms, ofBatch};
    return success();
  }

  // Zero is zero with any batch.
  static bool isZero(Value value) {
    auto fill = value.getDefiningOp<FillOp>();
    return fill && fill.getValue().isZero();
  }

  LogicalResult alike(Operation *op, OperandRange operands) {
    std::optional<Sum> all;
    for (Value operand : operands) {
      if (isZero(operand))
        continue;
      if (all && all->degree != of(operand))
        return refuse(op);
      bool isOther = all && all->terms != termsOf(operand);
      bool ofBatch = isOfBatch(operand) || (all && all->ofBatch);
      all = {of(operand), isOther ? 0 : termsOf(operand), ofBatch};
    }
    return all ? set(op, all->degree, all->terms, all->ofBatch) : set(op, 0);
  }

  // One over a number of elements is one over another number.
  LogicalResult rescale(Operation *op) {
    Value x = op->getOperand(0);
    double old = cast<ScaleOp>(op).getParameter(), terms = termsOf(x) * old;
    if (of(x) == 0)
      return isMeanOfShares(x, old)
                 ? op->emitOpError(
                       "keeps the batch from changing: it may be a mean over the batch of what is "
                       "weighed by shares of it")
                 : set(op, 0, terms >= 1 && terms == std::round(terms) ? terms : 1);
    double scaled = old * factor(of(x));
    double elements = std::round(1 / scaled);
    const bool wereElements = 1 / std::round(1 / old) == old;
    if (wereElements && isCorrected(std::round(1 / old), of(x), termsOf(x)))
      return op->emitOpError("keeps the batch from changing: it divides by one less than a number of rows");
    if (wereElements && std::abs(1 / scaled - elements) <= 1e-9 * std::abs(elements))
      scaled = 1 / elements;
    op->setAttr(ScaleOp::row().parameters[0], Builder(op->getContext()).getF64FloatAttr(scaled));
    return set(op, 0);
  }

  // Whether a sum over the batch that does not grow with it is divided by a number of rows, which does.
  bool isMeanOfShares(Value x, double scale) const {
    double counted = std::round(1 / scale);
    return isOfBatch(x) && counted > 1 && 1 / counted == scale && counted == termsOf(x);
  }

  // Whether a sum is divided by one less than its terms, or than rows of the batch, times or without others;
  // one of pairs of rows by what is no number of pairs.
  bool isCorrected(double counted, int64_t degree, double terms) const {
    double rows = double(oldBatch);
    if (oldBatch < 2 || terms == 0)
      return false;
    if (degree > 1 && std::fmod(counted, std::pow(rows, double(degree))) != 0)
      return true;
    return std::fmod(terms, counted) != 0 &&
           (counted == terms - 1 || std::fmod(terms / rows * (rows - 1), counted) == 0);
  }

  // Numbers of rows that are compared, or computed with a number of rows, choose as many in any batch.
  LogicalResult checkRows(Operation *op) const {
    bool compares = isa<EqOp, NeOp, LtOp, LeOp, GtOp, GeOp>(op);
    if (!compares && !isa<AddOp, SubOp, MulOp, MaximumOp, MinimumOp>(op))
      return success();
    for (unsigned i : {0u, 1u}) {
      Value rows = op->getOperand(i);
      FillOp filled = fillOf(op->getOperand(1 - i));
      if (isFloat(rows) || !numbersRows(rows))
        continue;
      double number = filled ? filled.getValue().convertToDouble() : 0;
      if (compares || isExtent(op, number) || isExtent(op, std::abs(number) + 1))
        return op->emitOpError("keeps the batch from changing: ")
               << (compares ? "it compares numbers of rows of the batch"
                            : "it computes with a number of rows that changes with it");
    }
    return success();
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
  llvm::DenseMap<Value, Sum> sums;
  llvm::DenseSet<Value> shares; // of a softmax over the batch
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
