#include "dialects/ft/elementwise.h"

#include "dialects/ft/verify.h"

#include <concepts>
#include <string_view>

namespace mlir::ft::elementwise {
namespace {

RankedTensorType tensor(Type type) { return cast<RankedTensorType>(type); }

// True where the operand is a condition.
bool isCondition(const ElementwiseRow &row, unsigned operand) {
  return row.domain == ElementwiseDomain::kLogic ||
         (row.domain == ElementwiseDomain::kSelect && operand == 0);
}

// The index of the first operand of the largest shape, of those that are no condition where `values` alone
// count.
unsigned largest(const ElementwiseRow &row, TypeRange operands, bool values) {
  unsigned best = values && row.domain == ElementwiseDomain::kSelect ? 1 : 0;
  for (unsigned i = best + 1; i < operands.size(); ++i)
    if (tensor(operands[i]).getRank() > tensor(operands[best]).getRank())
      best = i;
  return best;
}

bool isFloat(Type element) { return element.isF32() || element.isBF16() || element.isF16(); }

bool isLegal(const ElementwiseRow &row, Type element) {
  bool isInteger = element.isInteger(32) || element.isInteger(64);
  switch (row.domain) {
  case ElementwiseDomain::kFloat:
    return isFloat(element);
  case ElementwiseDomain::kInteger:
    return isInteger;
  case ElementwiseDomain::kNumber:
  case ElementwiseDomain::kCompare:
    return isFloat(element) || isInteger;
  case ElementwiseDomain::kLogic:
    return element.isInteger(1);
  case ElementwiseDomain::kSelect:
    return isFloat(element) || isInteger || element.isInteger(1);
  }
  return false;
}

llvm::StringRef expectedElements(const ElementwiseRow &row) {
  switch (row.domain) {
  case ElementwiseDomain::kFloat:
    return "f32, bf16 or f16 (ft.convert makes floats of integers)";
  case ElementwiseDomain::kInteger:
    return "i32 or i64";
  case ElementwiseDomain::kNumber:
  case ElementwiseDomain::kCompare:
    return "f32, bf16, f16, i32 or i64";
  case ElementwiseDomain::kLogic:
    return "i1, as comparisons give";
  case ElementwiseDomain::kSelect:
    return "f32, bf16, f16, i32, i64 or i1";
  }
  return "";
}

std::string operandName(unsigned index) { return std::string(1, static_cast<char>('a' + index)); }

// Floats may differ, since each is read in its own type.
bool sameKind(Type a, Type b) { return a == b || (isFloat(a) && isFloat(b)); }

LogicalResult verifyElements(const ElementwiseRow &row, Operation *op) {
  Type first;
  for (auto [index, type] : llvm::enumerate(op->getOperandTypes())) {
    Type element = tensor(type).getElementType();
    std::string name = operandName(index);
    if (isCondition(row, index) && !element.isInteger(1))
      return op->emitOpError() << name << " has elements of type " << element
                               << "; expected i1, as comparisons give";
    if (isCondition(row, index))
      continue;
    if (!isLegal(row, element))
      return op->emitOpError() << name << " has elements of type " << element << "; expected "
                               << expectedElements(row).str();
    if (!first)
      first = element;
    if (!sameKind(first, element))
      return op->emitOpError() << name << " has elements of type " << element << " beside " << first
                               << "; make them one with ft.convert";
  }
  Type result = tensor(op->getResult(0).getType()).getElementType();
  bool isTruth = row.domain == ElementwiseDomain::kCompare || row.domain == ElementwiseDomain::kLogic;
  if (isTruth ? result.isInteger(1) : sameKind(result, first))
    return success();
  InFlightDiagnostic error = op->emitOpError()
                             << "the result has elements of type " << result << "; expected ";
  return isTruth ? error << "i1" : error << first << ", as the operands";
}

LogicalResult verifyShapes(const ElementwiseRow &row, Operation *op) {
  for (Type type : llvm::concat<const Type>(llvm::to_vector(op->getOperandTypes()),
                                            llvm::to_vector(op->getResultTypes())))
    if (!isKernelShape(type))
      return op->emitOpError() << type << " is no shape that kernels take: at most " << kMaxRank
                               << " dimensions, static and positive";
  unsigned whole = largest(row, op->getOperandTypes(), false);
  for (auto [index, operand] : llvm::enumerate(op->getOperands())) {
    llvm::ArrayRef<int64_t> shape = verify::shape(operand), all = verify::shape(op->getOperand(whole));
    if (all.take_back(shape.size()) != shape)
      return op->emitOpError() << operandName(index) << " is " << shapeText(shape)
                               << "; expected the shape of " << operandName(whole) << ", " << shapeText(all)
                               << ", or its last dimensions (ft.broadcast repeats along others)";
  }
  return verify::shapeIs(op, "the result", op->getResult(0), verify::shape(op->getOperand(whole)),
                         "the shape of " + operandName(whole));
}

LogicalResult verifyParameters(const ElementwiseRow &row, Operation *op) {
  Type element = tensor(op->getResult(0).getType()).getElementType();
  for (int i = 0; i < row.num_parameters(); ++i) {
    auto value = op->getAttrOfType<FloatAttr>(row.parameters[i]);
    if (!value || !value.getType().isF64())
      return op->emitOpError() << "needs '" << row.parameters[i] << "', a number";
    double number = value.getValueAsDouble();
    if (failed(verify::isHeldBy(op, row.parameters[i], number, element)))
      return failure();
    if (!isFloat(element) && number != std::floor(number))
      return op->emitOpError() << row.parameters[i] << " is " << number
                               << "; expected an integer, as the operand's elements";
    if (row.domain == ElementwiseDomain::kInteger && number < 1)
      return op->emitOpError() << row.parameters[i] << " is " << number << "; expected 1 or more";
  }
  if (row.kind == Elementwise::kClamp && parameter(row, op, 0) > parameter(row, op, 1))
    return op->emitOpError() << "min is " << parameter(row, op, 0) << ", above max, "
                             << parameter(row, op, 1);
  return success();
}

} // namespace

double parameter(const ElementwiseRow &row, Operation *op, unsigned index) {
  return op->getAttrOfType<FloatAttr>(row.parameters[index]).getValueAsDouble();
}

Type inferType(const ElementwiseRow &row, TypeRange operands) {
  if (static_cast<int>(operands.size()) != row.operands ||
      !llvm::all_of(operands, [](Type type) { return isa<RankedTensorType>(type); }))
    return {};
  auto shape = tensor(operands[largest(row, operands, false)]).getShape();
  Type element = tensor(operands[largest(row, operands, true)]).getElementType();
  if (row.domain == ElementwiseDomain::kCompare)
    element = IntegerType::get(element.getContext(), 1);
  return RankedTensorType::get(shape, element);
}

void build(const ElementwiseRow &row, OpBuilder &builder, OperationState &state, Type result,
           ValueRange operands, ArrayRef<double> parameters) {
  state.addOperands(operands);
  state.addTypes(result);
  for (auto [name, value] : llvm::zip(row.parameters, parameters))
    state.addAttribute(name, builder.getF64FloatAttr(value));
}

// %a, %b, 0.5 {layer = "l"} : type, type -> type
ParseResult parse(const ElementwiseRow &row, OpAsmParser &parser, OperationState &state) {
  llvm::SmallVector<OpAsmParser::UnresolvedOperand, 3> operands(row.operands);
  for (int i = 0; i < row.operands; ++i)
    if ((i != 0 && parser.parseComma()) || parser.parseOperand(operands[i]))
      return failure();
  for (int i = 0; i < row.num_parameters(); ++i) {
    FloatAttr number;
    if (parser.parseComma() || parseReal(parser, number))
      return failure();
    state.addAttribute(row.parameters[i], number);
  }
  llvm::SmallVector<Type, 3> types;
  SMLoc place = parser.getCurrentLocation();
  if (parser.parseOptionalAttrDict(state.attributes) || parser.parseColonTypeList(types))
    return failure();
  if (types.size() == 1)
    types.resize(row.operands, types[0]); // all alike
  Type result = inferType(row, types);
  if (!result)
    return parser.emitError(place) << "expected " << row.operands << " ranked tensor types, or one for all";
  if (succeeded(parser.parseOptionalArrow()) && parser.parseType(result))
    return failure();
  state.addTypes(result);
  return parser.resolveOperands(operands, types, place, state.operands);
}

void print(const ElementwiseRow &row, Operation *op, OpAsmPrinter &printer) {
  printer << ' ' << op->getOperands();
  llvm::SmallVector<llvm::StringRef, 2> names;
  for (int i = 0; i < row.num_parameters(); ++i) {
    names.push_back(row.parameters[i]);
    printer << ", ";
    printReal(printer.getStream(), parameter(row, op, i));
  }
  printer.printOptionalAttrDict(op->getAttrs(), names);
  printer << " : " << op->getOperandTypes();
  if (op->getResult(0).getType() != inferType(row, op->getOperandTypes()))
    printer << " -> " << op->getResult(0).getType();
}

LogicalResult verify(const ElementwiseRow &row, Operation *op) {
  if (static_cast<int>(op->getNumOperands()) != row.operands)
    return op->emitOpError() << "takes " << row.operands << (row.operands == 1 ? " operand" : " operands")
                             << ", not " << op->getNumOperands();
  for (Type type : llvm::concat<const Type>(llvm::to_vector(op->getOperandTypes()),
                                            llvm::to_vector(op->getResultTypes())))
    if (!isa<RankedTensorType>(type))
      return op->emitOpError() << "takes and gives tensors, not " << type;
  if (failed(verifyElements(row, op)) || failed(verifyShapes(row, op)))
    return failure();
  return verifyParameters(row, op);
}

// No value changes, but for the sign of a zero where 0 is added (-0 + 0 would be +0).
OpFoldResult fold(const ElementwiseRow &row, Operation *op) {
  auto same = [&](Value value) { return value.getType() == op->getResult(0).getType() ? value : Value(); };
  if (row.kind == Elementwise::kScale && parameter(row, op, 0) == 1)
    return same(op->getOperand(0));
  if (row.kind != Elementwise::kAdd)
    return {};
  auto isZero = [](Value value) {
    auto fill = value.getDefiningOp<FillOp>();
    return fill && fill.getValue().isZero();
  };
  if (isZero(op->getOperand(1)))
    return same(op->getOperand(0));
  return isZero(op->getOperand(0)) ? same(op->getOperand(1)) : Value();
}

Value reusableOperand(Operation *op) {
  for (Value operand : op->getOperands())
    if (operand.getType() == op->getResult(0).getType())
      return operand;
  return {};
}

//===----------------------------------------------------------------------===//
// Derivatives: the expressions of the table, with values of the graph for letters
//===----------------------------------------------------------------------===//

namespace {

// The place where a derivative is built; the ops of its expressions go there.
struct Place {
  OpBuilder &builder;
  Location loc;
};

struct Constant {
  double value;
};

// Without a value: zero.
struct Graph {
  Place *place = nullptr;
  Value value;
};

template <typename ConcreteOp> Graph make(ArrayRef<Graph> operands, ArrayRef<double> parameters = {}) {
  Place &place = *operands[0].place;
  auto values = llvm::map_to_vector(operands, [](const Graph &operand) { return operand.value; });
  return {&place, ConcreteOp::create(place.builder, place.loc, ValueRange(values), parameters)};
}

// A scalar beside `like`: it is repeated.
Graph scalar(Constant constant, const Graph &like) {
  Type type = RankedTensorType::get({}, tensor(like.value.getType()).getElementType());
  OpBuilder &builder = like.place->builder;
  return {like.place,
          FillOp::create(builder, like.place->loc, type, builder.getF64FloatAttr(constant.value))};
}

Constant K(double value) { return {value}; }
Graph Zero() { return {}; }

Graph operator+(Graph a, Graph b) { return make<AddOp>({a, b}); }
Graph operator+(Constant k, Graph a) { return make<ShiftOp>({a}, {k.value}); }
[[maybe_unused]] Graph operator-(Graph a, Graph b) { return make<SubOp>({a, b}); }
Graph operator-(Graph a) { return make<NegOp>({a}); }
Graph operator-(Constant k, Graph a) { return make<ShiftOp>({-a}, {k.value}); }
Graph operator*(Graph a, Graph b) { return make<MulOp>({a, b}); }
Graph operator*(Constant k, Graph a) { return make<ScaleOp>({a}, {k.value}); }
Graph operator/(Graph a, Graph b) { return make<DivOp>({a, b}); }
Graph operator/(Graph a, Constant k) { return make<ScaleOp>({a}, {1 / k.value}); }
Graph operator&(Graph a, Graph b) { return make<AndOp>({a, b}); }
Graph operator==(Graph a, Graph b) { return make<EqOp>({a, b}); }
Graph operator<(Graph a, Graph b) { return make<LtOp>({a, b}); }
Graph operator>(Graph a, Graph b) { return make<GtOp>({a, b}); }
Graph operator>(Graph a, Constant k) { return make<GtOp>({a, scalar(k, a)}); }
Graph operator<(Graph a, Constant k) { return make<LtOp>({a, scalar(k, a)}); }
Graph Pow(Graph a, double exponent) { return make<PowOp>({a}, {exponent}); }
Graph Select(Graph condition, Graph a, Graph b) {
  return make<SelectOp>({condition, a.value ? a : scalar(K(0), b), b.value ? b : scalar(K(0), a)});
}

// Every row without parameters, under its name.
#define FT_ELEMENTWISE(Name, mnemonic, domain, operands, parameters, ...)                                    \
  template <std::same_as<Graph>... Graphs>                                                                   \
    requires(sizeof...(Graphs) == operands && std::string_view(#parameters) == "()")                         \
  Graph Name(Graphs... graphs) {                                                                             \
    return make<Name##Op>({graphs...});                                                                      \
  }
#include "runtime/base/elementwise.def"
#undef FT_ELEMENTWISE

// What a derivative may be made of.
struct Letters {
  Graph a, b, c, y, dy;
  double p = 0, q = 0;
};

#define FT_PICK_0(g0, ...) g0
#define FT_PICK_1(g0, g1, ...) g1
#define FT_PICK_2(g0, g1, g2, ...) g2
#define FT_PADDED(...) __VA_ARGS__, Zero(), Zero()
#define FT_CALL(macro, ...) macro(__VA_ARGS__)

// The expression of one operand.
Graph derivative(Elementwise kind, unsigned operand, const Letters &letters) {
  const auto &[a, b, c, y, dy, p, q] = letters;
  switch (kind) {
#define FT_ELEMENTWISE(Name, mnemonic, domain, operands, parameters, value, gradients, summary)              \
  case Elementwise::k##Name:                                                                                 \
    if (operand == 0)                                                                                        \
      return FT_CALL(FT_PICK_0, FT_PADDED gradients);                                                        \
    if (operand == 1)                                                                                        \
      return FT_CALL(FT_PICK_1, FT_PADDED gradients);                                                        \
    return FT_CALL(FT_PICK_2, FT_PADDED gradients);
#include "runtime/base/elementwise.def"
#undef FT_ELEMENTWISE
  }
  return Zero();
}

// In the shape of the operand: zeros where there is none, sums where the operand was repeated.
Value toOperand(Place &place, Graph gradient, Value operand) {
  if (!gradient.value)
    return FillOp::create(place.builder, place.loc, operand.getType(), place.builder.getF64FloatAttr(0));
  if (gradient.value.getType() == operand.getType())
    return gradient.value;
  return ReduceOp::create(place.builder, place.loc, tensor(operand.getType()), gradient.value);
}

} // namespace

llvm::SmallVector<Value> buildGradient(const ElementwiseRow &row, Operation *op, OpBuilder &builder, Value dy,
                                       ArrayRef<bool> needed) {
  Place place{builder, op->getLoc()};
  auto letter = [&](unsigned index) {
    return index < op->getNumOperands() ? Graph{&place, op->getOperand(index)} : Graph();
  };
  Letters letters{letter(0), letter(1), letter(2), {&place, op->getResult(0)}, {&place, dy}};
  if (row.num_parameters() > 0)
    letters.p = parameter(row, op, 0);
  if (row.num_parameters() > 1)
    letters.q = parameter(row, op, 1);
  llvm::SmallVector<Value> gradients(op->getNumOperands());
  for (unsigned i = gradients.size(); i-- > 0;) // weights, which come last, first: derivatives.cc
    if (needed[i])
      gradients[i] = toOperand(place, derivative(row.kind, i, letters), op->getOperand(i));
  return gradients;
}

} // namespace mlir::ft::elementwise
