#include "dialects/ft/dialect.h"

#include <cmath>

#include "dialects/ft/composite_body.h"
#include "mlir/IR/DialectImplementation.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/TypeSwitch.h"

#include "dialects/ft/dialect.cc.inc"
#include "dialects/ft/enums.cc.inc"
#include "dialects/ft/interfaces.cc.inc"

#define GET_ATTRDEF_CLASSES
#include "dialects/ft/attributes.cc.inc"

#define GET_TYPEDEF_CLASSES
#include "dialects/ft/types.cc.inc"

#define GET_OP_CLASSES
#include "dialects/ft/ops.cc.inc"

namespace mlir::ft {

void FtDialect::initialize() {
  addAttributes<
#define GET_ATTRDEF_LIST
#include "dialects/ft/attributes.cc.inc"
      >();
  addTypes<
#define GET_TYPEDEF_LIST
#include "dialects/ft/types.cc.inc"
      >();
  addOperations<
#define GET_OP_LIST
#include "dialects/ft/ops.cc.inc"
      >();
#define FT_ELEMENTWISE(Name, mnemonic, domain, operands, parameters, value, gradients, summary)              \
  addOperations<Name##Op>();
#include "runtime/base/elementwise.def"
#undef FT_ELEMENTWISE
}

uint64_t elementBytes(Type element) { return llvm::divideCeil(element.getIntOrFloatBitWidth(), 8); }

bool isKernelShape(Type type) {
  auto tensor = dyn_cast<RankedTensorType>(type);
  return tensor && tensor.getRank() <= kMaxRank &&
         llvm::all_of(tensor.getShape(), [](int64_t extent) { return extent > 0; });
}

LogicalResult InitAttr::verify(llvm::function_ref<InFlightDiagnostic()> emitError, InitKind kind,
                               FloatAttr number) {
  if (!number.getValue().isFinite())
    return emitError() << "the number of an initialiser is " << number.getValueAsDouble()
                       << "; expected a finite one";
  if (kind == InitKind::normal && number.getValueAsDouble() < 0)
    return emitError() << "the standard deviation of an initialiser is " << number.getValueAsDouble()
                       << ", it cannot be negative";
  if (kind == InitKind::uniform && number.getValueAsDouble() < 0)
    return emitError() << "the bound of an initialiser is " << number.getValueAsDouble()
                       << ", it cannot be negative";
  return success();
}

FillOp fillOf(Value value) {
  while (Operation *op = value.getDefiningOp()) {
    if (auto fill = dyn_cast<FillOp>(op))
      return fill;
    if (!isa<ConvertOp, CopyOp, BroadcastOp, ReshapeOp>(op))
      break;
    value = op->getOperand(0);
  }
  return {};
}

} // namespace mlir::ft
