// Differentiation of the forward graph: --ft-autodiff, --ft-verify-autodiff.
#pragma once

#include <memory>

#include "dialects/ft/dialect.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/Pass.h"

namespace mlir::ft {

#define GEN_PASS_DECL
#include "compiler/autodiff/passes.h.inc"

#define GEN_PASS_REGISTRATION
#include "compiler/autodiff/passes.h.inc"

} // namespace mlir::ft
