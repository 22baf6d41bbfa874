#include "compiler/autodiff/row_factors.h"

#include "dialects/ft/elementwise.h"
#include "dialects/ft/verify.h"

namespace mlir::ft {
namespace {

using verify::shape;
using verify::tensor;

bool isSumOfRow(ReduceOp sum) {
  return sum.getKind() == "sum" && sum.getDims().size() == 1 &&
         sum.getDims()[0] == tensor(sum.getX()).getRank() - 1;
}

class RowFactors {
public:
  explicit RowFactors(ReduceOp sum) : sum(sum), builder(sum) {}

  // The sum of what is left, times the factors; null where there are none.
  Value run() {
    Value rest = sum.getX();
    SmallVector<std::function<Value(Value)>> factors;
    while (auto factor = takeFactor(rest))
      factors.push_back(*factor);
    if (factors.empty())
      return {};
    Value result =
        ReduceOp::create(builder, sum.getLoc(), sum.getType(), rest, sum.getKindAttr(), sum.getDimsAttr());
    for (const auto &factor : llvm::reverse(factors))
      result = factor(result);
    return result;
  }

private:
  using Factor = std::function<Value(Value)>;

  // Takes one off `rest`; it multiplies what it is given.
  std::optional<Factor> takeFactor(Value &rest) {
    Operation *op = rest.getDefiningOp();
    if (isa_and_nonnull<NegOp>(op)) {
      rest = op->getOperand(0);
      return [this](Value row) -> Value { return NegOp::create(builder, sum.getLoc(), ValueRange(row)); };
    }
    if (auto scale = dyn_cast_or_null<ScaleOp>(op)) {
      rest = op->getOperand(0);
      return [this, factor = scale.getParameter()](Value row) -> Value {
        return ScaleOp::create(builder, sum.getLoc(), ValueRange(row), factor);
      };
    }
    if (!isa_and_nonnull<MulOp>(op))
      return std::nullopt;
    for (unsigned i : {0, 1}) {
      Value ofRow = sameInRow(op->getOperand(i)), other = op->getOperand(1 - i);
      if (!ofRow || other.getType() != rest.getType())
        continue;
      rest = other;
      return [this, ofRow](Value row) -> Value {
        return MulOp::create(builder, sum.getLoc(), ValueRange{row, ofRow});
      };
    }
    return std::nullopt;
  }

  // Of the shape of the sum, when `value` repeats it along rows.
  Value sameInRow(Value value) {
    auto spread = value.getDefiningOp<BroadcastOp>();
    if (!spread || shape(value) != shape(sum.getX()) ||
        tensor(value).getElementType() != sum.getType().getElementType())
      return {};
    ArrayRef<int64_t> from = shape(spread.getX());
    if (from.empty() || from.back() != 1 || shape(value).back() == 1 ||
        from.drop_back() != shape(sum.getResult()))
      return {};
    return ReshapeOp::create(builder, sum.getLoc(), sum.getType(), spread.getX());
  }

  ReduceOp sum;
  OpBuilder builder;
};

} // namespace

void takeFactorsOutOfSums(Block &block) {
  for (auto sum : llvm::make_early_inc_range(block.getOps<ReduceOp>())) {
    if (!isSumOfRow(sum))
      continue;
    if (Value product = RowFactors(sum).run()) {
      sum.getResult().replaceAllUsesWith(product);
      sum.erase();
    }
  }
}

} // namespace mlir::ft
