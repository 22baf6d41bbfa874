#include "dialects/ftx/dialect.h"

#include "mlir/IR/Builders.h"
#include "mlir/IR/DialectImplementation.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace mlir::ftx;

#include "dialects/ftx/dialect.cc.inc"
#include "dialects/ftx/enums.cc.inc"

#define GET_TYPEDEF_CLASSES
#include "dialects/ftx/types.cc.inc"

#define GET_ATTRDEF_CLASSES
#include "dialects/ftx/attributes.cc.inc"

void FtxDialect::initialize() {
  addTypes<
#define GET_TYPEDEF_LIST
#include "dialects/ftx/types.cc.inc"
      >();
  addAttributes<
#define GET_ATTRDEF_LIST
#include "dialects/ftx/attributes.cc.inc"
      >();
  addOperations<
#define GET_OP_LIST
#include "dialects/ftx/ops.cc.inc"
      >();
}
