// --ft-expand-orthogonalize
// Enters: gathers are in place, all is f32. Leaves: see passes.td. Nothing is refused.
#include "compiler/optimizer/passes.h"

#include "dialects/ft/elementwise.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

#include <cmath>

namespace ft::compiler {

#define GEN_PASS_DEF_EXPANDORTHOGONALIZEPASS
#include "compiler/optimizer/passes.h.inc"

namespace {

using namespace mlir;
using mlir::ft::BroadcastOp;
using mlir::ft::DotOp;
using mlir::ft::FillOp;
using mlir::ft::MatmulOp;
using mlir::ft::OrthogonalizeOp;
using mlir::ft::ReduceOp;
using mlir::ft::ReshapeOp;

constexpr int kSteps = 5;
constexpr double kA = 3.4445, kB = -4.7750, kC = 2.0315, kEps = 1e-7, kRootMeanSquare = 0.2;

// Ops on matrices: [rows, columns], or several side by side.
class MatrixBuilder {
public:
  MatrixBuilder(OrthogonalizeOp op) : b(op), op(op), loc(op.getLoc()) {}

  Value build() {
    auto type = cast<RankedTensorType>(op.getX().getType());
    if (type.getRank() < 4)
      return orthogonalized(op.getX());
    ArrayRef<int64_t> shape = type.getShape();
    int64_t elements = shape[type.getRank() - 2] * shape.back();
    auto rows = type.clone({type.getNumElements() / elements, shape[type.getRank() - 2], shape.back()});
    return make<ReshapeOp>(type, orthogonalized(make<ReshapeOp>(rows, op.getX())));
  }

private:
  Value orthogonalized(Value x) {
    auto type = cast<RankedTensorType>(x.getType());
    const int64_t rows = type.getShape()[type.getRank() - 2], columns = type.getShape().back();
    x = map<mlir::ft::DivOp>({x, normOf(x)});
    for (int step = 0; step < kSteps; ++step) {
      // Of the smaller side: X X^T from the left or X^T X from the right, which is symmetric.
      Value gram = rows <= columns ? product(x, x, false, true) : product(x, x, true, false);
      Value square = product(gram, gram, false, false);
      Value factor = map<mlir::ft::AddOp>({scaled(gram, kB), scaled(square, kC)});
      Value moved = rows <= columns ? product(factor, x, false, false) : product(x, factor, false, false);
      x = map<mlir::ft::AddOp>({scaled(x, kA), moved});
    }
    return scaled(x, kRootMeanSquare * std::sqrt(static_cast<double>(std::max(rows, columns))));
  }

  // A scalar, or one for each matrix, repeated.
  Value normOf(Value x) {
    auto type = cast<RankedTensorType>(x.getType());
    const bool one = type.getRank() == 2;
    auto ofRows = type.clone(type.getShape().drop_back());
    Value sum = make<ReduceOp>(ofRows, map<mlir::ft::SquareOp>(x), b.getStringAttr("sum"),
                               b.getDenseI64ArrayAttr({type.getRank() - 1}));
    sum = make<ReduceOp>(ofRows.clone(ofRows.getShape().drop_back()), sum, b.getStringAttr("sum"),
                         b.getDenseI64ArrayAttr({type.getRank() - 2}));
    Value eps = make<FillOp>(type.clone(ArrayRef<int64_t>()), b.getF64FloatAttr(kEps));
    Value norm = map<mlir::ft::MaximumOp>({map<mlir::ft::SqrtOp>(sum), eps});
    if (one)
      return norm;
    norm = make<ReshapeOp>(type.clone({type.getShape()[0], 1, 1}), norm);
    return make<BroadcastOp>(type, norm);
  }

  Value product(Value x, Value y, bool transposeX, bool transposeY) {
    auto a = cast<RankedTensorType>(x.getType()), c = cast<RankedTensorType>(y.getType());
    const int64_t last = a.getRank() - 1;
    SmallVector<int64_t> shape(a.getShape());
    shape[last - 1] = a.getShape()[transposeX ? last : last - 1];
    shape[last] = c.getShape()[transposeY ? last - 1 : last];
    if (last > 1)
      return make<DotOp>(a.clone(shape), x, y, transposeX, transposeY);
    return make<MatmulOp>(a.clone(shape), x, y, /*bias=*/Value(), /*acc=*/Value(), transposeX, transposeY);
  }

  Value scaled(Value x, double factor) {
    auto scalar = RankedTensorType::get({}, b.getF32Type());
    return map<mlir::ft::MulOp>({x, make<FillOp>(scalar, b.getF64FloatAttr(factor))});
  }

  template <typename ConcreteOp> Value map(ValueRange operands) { return make<ConcreteOp>(operands); }

  template <typename ConcreteOp, typename... Args> Value make(Args &&...args) {
    auto made = ConcreteOp::create(b, loc, std::forward<Args>(args)...);
    made->setDiscardableAttrs(op->getDiscardableAttrDictionary());
    return made->getResult(0);
  }

  OpBuilder b;
  OrthogonalizeOp op;
  Location loc;
};

struct ExpandOrthogonalizePass : impl::ExpandOrthogonalizePassBase<ExpandOrthogonalizePass> {
  void runOnOperation() override {
    auto train = getOperation().lookupSymbol<func::FuncOp>(mlir::ft::kTrainStepFunction);
    if (!train)
      return;
    for (OrthogonalizeOp op : llvm::make_early_inc_range(train.getOps<OrthogonalizeOp>())) {
      op.replaceAllUsesWith(MatrixBuilder(op).build());
      op.erase();
    }
  }
};

} // namespace
} // namespace ft::compiler
