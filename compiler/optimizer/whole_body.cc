#include "compiler/optimizer/whole_body.h"

#include "dialects/ft/composites.h"
#include "fmt/format.h"
#include "fmt/ranges.h"
#include "runtime/base/status_macros.h"

namespace ft::compiler {
namespace {

using namespace mlir;
using mlir::ft::ReduceOp;
using mlir::ft::ReshapeOp;

RankedTensorType typeOf(Value value) { return cast<RankedTensorType>(value.getType()); }

Value sum(OpBuilder &b, Value x, int64_t dim) {
  SmallVector<int64_t> shape(typeOf(x).getShape());
  shape.erase(shape.begin() + dim);
  return ReduceOp::create(b, x.getLoc(), typeOf(x).clone(shape), x, b.getStringAttr("sum"),
                          b.getDenseI64ArrayAttr({dim}));
}

Value divided(FormulaBuilder &formulas, Value x, int64_t count) {
  return formulas.elementwise("div", {x, formulas.constant(static_cast<double>(count))});
}

// Over a dimension, which has an extent of 1 then.
Value means(FormulaBuilder &formulas, Value x, int64_t dim) {
  OpBuilder &b = formulas.builder();
  SmallVector<int64_t> shape(typeOf(x).getShape());
  const int64_t count = shape[dim];
  shape[dim] = 1;
  Value kept = ReshapeOp::create(b, x.getLoc(), typeOf(x).clone(shape), sum(b, x, dim));
  return divided(formulas, kept, count);
}

Value rootMeanSquare(FormulaBuilder &formulas, Value x) {
  const int64_t rank = typeOf(x).getRank(), count = typeOf(x).getNumElements();
  x = formulas.elementwise("square", {x});
  for (int64_t dim = rank; dim-- > 0;)
    x = sum(formulas.builder(), x, dim);
  return formulas.elementwise("sqrt", {divided(formulas, x, count)});
}

// Functions of a whole parameter, and of its rows and columns.
Value reduction(FormulaBuilder &formulas, StringRef name, ArrayRef<Value> operands) {
  if (operands.size() != 1)
    return {};
  const int64_t rank = typeOf(operands[0]).getRank();
  if (name == "root_mean_square")
    return rootMeanSquare(formulas, operands[0]);
  if (rank >= 2 && name == "row_means")
    return means(formulas, operands[0], rank - 1);
  if (rank >= 2 && name == "column_means")
    return means(formulas, operands[0], rank - 2);
  return {};
}

class BodyBuilder {
public:
  BodyBuilder(const WholeBody &body, const Hyperparameters &hyperparameters)
      : body(body), b(body.parameter.getContext()), loc(b.getUnknownLoc()),
        values(b, hyperparameters, reduction) {}

  absl::StatusOr<OwningOpRef<func::FuncOp>> build() {
    OwningOpRef<func::FuncOp> function = declare();
    Block *entry = function->addEntryBlock();
    b.setInsertionPointToEnd(entry);
    Block::BlockArgListType arguments = entry->getArguments();
    scalars = arguments.back();
    values.set("direction", arguments[0]);
    if (body.takesParameter())
      values.set("parameter", arguments[1]);
    SmallVector<Value> before;
    for (auto [part, unit] :
         llvm::zip_equal(body.parts, arguments.take_back(body.parts.size() + 1).drop_back())) {
      before.push_back(partOf(part, unit));
      values.set(part.state->name, before.back());
    }
    for (auto [index, formula] : llvm::enumerate(body.scalars))
      values.setScalar(formula, scalar(static_cast<int64_t>(index) + 1));
    FT_RETURN_IF_ERROR(values.run(body.formulas));
    SmallVector<Value> results = {values.get("direction")};
    for (auto [part, old] : llvm::zip_equal(body.parts, before))
      results.push_back(selected(part, old));
    func::ReturnOp::create(b, loc, results);
    return function;
  }

private:
  OwningOpRef<func::FuncOp> declare() {
    auto f32 = RankedTensorType::get({}, b.getF32Type());
    SmallVector<Type> types(body.takesParameter() ? 2 : 1, body.parameter), results = {body.parameter};
    for (const WholeBody::Part &part : body.parts) {
      types.push_back(part.unit);
      results.push_back(part.unit.clone({part.elements}));
    }
    types.push_back(f32.clone({2, static_cast<int64_t>(body.scalars.size()) + 1}));
    OwningOpRef<func::FuncOp> function =
        func::FuncOp::create(loc, fmt::format("{}.{}", body.rule, fmt::join(body.parameter.getShape(), "x")),
                             b.getFunctionType(types, results));
    function->setPrivate();
    function.get()->setAttr(mlir::ft::kCompositeAttr, b.getUnitAttr());
    for (size_t part = 0; part < body.parts.size(); ++part)
      function->setResultAttr(1 + part, mlir::ft::kStatisticAttr, b.getUnitAttr());
    return function;
  }

  Value partOf(const WholeBody::Part &part, Value unit) {
    if (part.elements != part.unit.getNumElements())
      unit = mlir::ft::SliceOp::create(b, loc, part.unit.clone({part.elements}), unit,
                                       b.getDenseI64ArrayAttr({part.begin}));
    return ReshapeOp::create(b, loc,
                             part.unit.clone(*StateShape(part.state->kind, body.parameter.getShape())), unit);
  }

  // A number of the step, for weights that do not decay.
  Value scalar(int64_t index) {
    auto type = RankedTensorType::get({1, 1}, b.getF32Type());
    Value one = mlir::ft::SliceOp::create(b, loc, type, scalars, b.getDenseI64ArrayAttr({0, index}));
    return ReshapeOp::create(b, loc, type.clone(ArrayRef<int64_t>()), one);
  }

  Value selected(const WholeBody::Part &part, Value before) {
    Value clip = scalar(0);
    Value after = values.elementwise(
        "select", {values.elementwise("ne", {clip, clip}), before, values.get(part.state->name)});
    return ReshapeOp::create(b, loc, part.unit.clone({part.elements}), after);
  }

  const WholeBody &body;
  OpBuilder b;
  Location loc;
  FormulaBuilder values;
  Value scalars;
};

bool reads(const Expression &expression, std::string_view name) {
  return (expression.kind == Expression::Kind::kName && expression.name == name) ||
         llvm::any_of(expression.operands, [&](const Expression &operand) { return reads(operand, name); });
}

} // namespace

bool WholeBody::takesParameter() const {
  return llvm::any_of(formulas,
                      [](const Assignment &assignment) { return reads(assignment.value, "parameter"); });
}

std::string WholeBody::key() const {
  std::string key = fmt::format("{}", fmt::join(parameter.getShape(), "x"));
  for (const Part &part : parts)
    key += fmt::format(" {} of {}", part.begin, part.unit.getNumElements());
  return key;
}

absl::StatusOr<OwningOpRef<func::FuncOp>> makeWholeBody(const WholeBody &body,
                                                        const Hyperparameters &hyperparameters) {
  return BodyBuilder(body, hyperparameters).build();
}

} // namespace ft::compiler
