// Verifiers of parameters and of what reads and fills them.
#include "dialects/ft/symbols.h"
#include "dialects/ft/verify.h"
#include "llvm/ADT/StringExtras.h"

namespace mlir::ft {
namespace {

// Inputs that the executor provides, with their types as text.
struct KnownInput {
  llvm::StringLiteral name;
  unsigned integerBits; // 0: f32
  int64_t extent;       // 0: a scalar
};
constexpr KnownInput kKnownInputs[] = {{kRngInput, 64, 3},         {kLrInput, 0, 0},
                                       {kStepInput, 64, 0},        {kScalerInput, 0, kScalerNumbers},
                                       {kInverseRanksInput, 0, 0}, {kSamplePositionInput, 32, 0}};

RankedTensorType typeOf(const KnownInput &input, MLIRContext *context) {
  Type element = input.integerBits == 0 ? Type(Float32Type::get(context))
                                        : Type(IntegerType::get(context, input.integerBits));
  llvm::SmallVector<int64_t> shape;
  if (input.extent > 0)
    shape.push_back(input.extent);
  return RankedTensorType::get(shape, element);
}

// `value` has the type of the parameter that `op` names.
LogicalResult verifyParameterType(Operation *op, SymbolTableCollection &symbols, FlatSymbolRefAttr name,
                                  Value value) {
  ParameterOp parameter = verify::parameter(op, symbols, name);
  if (!parameter)
    return failure();
  if (value.getType() == parameter.getType())
    return success();
  return op->emitOpError() << "has type " << value.getType() << " but " << name << " is "
                           << parameter.getType();
}

} // namespace

LogicalResult ParameterOp::verify() {
  if (bool(getUnitAttr()) != bool(getOffsetAttr()))
    return emitOpError() << "has " << (getUnitAttr() ? "a unit but no offset" : "an offset but no unit")
                         << "; expected both or neither";
  if (getOffset() && (int64_t(*getOffset()) < 0 || *getOffset() % kBlockElements != 0))
    return emitOpError() << "offset is " << int64_t(*getOffset()) << "; expected a multiple of "
                         << kBlockElements;
  return success();
}

LogicalResult UnitOp::verify() {
  int64_t elements = getElements();
  if (elements > 0 && elements % kBlockElements == 0)
    return success();
  return emitOpError() << "elements is " << elements << "; expected a positive multiple of "
                       << kBlockElements;
}

LogicalResult InputOp::verify() {
  llvm::SmallVector<llvm::StringRef> names;
  for (const KnownInput &input : kKnownInputs) {
    names.push_back(input.name);
    if (input.name != getName())
      continue;
    RankedTensorType expected = typeOf(input, getContext());
    if (getType() == expected)
      return success();
    return emitOpError() << "\"" << getName() << "\" is " << getType() << "; expected " << expected;
  }
  InFlightDiagnostic error = emitOpError() << "there is no input \"" << getName() << "\"";
  if (llvm::StringRef near = nearestName(getName(), names); !near.empty())
    error << "; did you mean \"" << near << "\"?";
  else
    error << "; inputs are " << llvm::join(names, ", ");
  return error;
}

LogicalResult GetOp::verifySymbolUses(SymbolTableCollection &symbols) {
  return verifyParameterType(*this, symbols, getParameterAttr(), getValue());
}

LogicalResult GradientOp::verifySymbolUses(SymbolTableCollection &symbols) {
  return verifyParameterType(*this, symbols, getParameterAttr(), getValue());
}

LogicalResult InitOp::verify() {
  auto rng = RankedTensorType::get({3}, IntegerType::get(getContext(), 64));
  if (getRng().getType() == rng)
    return success();
  return emitOpError() << "rng is " << getRng().getType() << "; expected " << rng << ": seed, step, rank";
}

LogicalResult InitOp::verifySymbolUses(SymbolTableCollection &symbols) {
  return success(bool(verify::parameter(*this, symbols, getParameterAttr())));
}

} // namespace mlir::ft
