// Stage `remat`: which activations are kept for backward, computed again, or moved to host memory.
#pragma once

#include "dialects/ft/dialect.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/Pass.h"

#include <memory>

namespace ft::compiler {

#define GEN_PASS_DECL
#include "compiler/remat/passes.h.inc"

#define GEN_PASS_REGISTRATION
#include "compiler/remat/passes.h.inc"

} // namespace ft::compiler
