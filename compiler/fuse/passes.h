// Groups of ops that one kernel computes better: --ft-fuse-linear-cross-entropy, --ft-fuse-loss-grad,
// --ft-fuse-gelu.
#pragma once

#include <memory>

#include "dialects/ft/dialect.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/Pass.h"

namespace mlir::ft {

#define GEN_PASS_DECL
#include "compiler/fuse/passes.h.inc"

#define GEN_PASS_REGISTRATION
#include "compiler/fuse/passes.h.inc"

} // namespace mlir::ft
