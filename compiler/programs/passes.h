// The programs of a job: training, micro-steps, evaluation.
#pragma once

#include <memory>

#include "dialects/ft/dialect.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Pass/Pass.h"

namespace ft::compiler {

#define GEN_PASS_DECL
#include "compiler/programs/passes.h.inc"
#define GEN_PASS_REGISTRATION
#include "compiler/programs/passes.h.inc"

} // namespace ft::compiler
