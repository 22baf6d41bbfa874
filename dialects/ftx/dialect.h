// The dialect ftx: a training job as static schedules over buffers. The ops are listed in ops.td.
// This is the header to include; views.h has what passes need on top.
#pragma once

#include "mlir/Bytecode/BytecodeOpInterface.h"
#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Dialect.h"
#include "mlir/IR/OpDefinition.h"
#include "mlir/IR/OpImplementation.h"
#include "mlir/IR/RegionKindInterface.h"
#include "mlir/IR/SymbolTable.h"

#include "dialects/ftx/dialect.h.inc"
#include "dialects/ftx/enums.h.inc"

#define GET_TYPEDEF_CLASSES
#include "dialects/ftx/types.h.inc"

#define GET_ATTRDEF_CLASSES
#include "dialects/ftx/attributes.h.inc"

#include "dialects/ftx/interfaces.h.inc"

#define GET_OP_CLASSES
#include "dialects/ftx/ops.h.inc"
