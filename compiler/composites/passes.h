// Composites: functions of a model that are called as one op.
#pragma once

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Pass/Pass.h"

#include <memory>

namespace ft::compiler {

#define GEN_PASS_DECL
#include "compiler/composites/passes.h.inc"

#define GEN_PASS_REGISTRATION
#include "compiler/composites/passes.h.inc"

} // namespace ft::compiler
