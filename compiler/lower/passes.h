// Stage `lower`: from values to instructions over buffers.
#pragma once

#include "dialects/ft/dialect.h"
#include "dialects/ftx/dialect.h"
#include "mlir/Pass/Pass.h"

#include <memory>

namespace ft::compiler {

#define GEN_PASS_DECL
#include "compiler/lower/passes.h.inc"

#define GEN_PASS_REGISTRATION
#include "compiler/lower/passes.h.inc"

} // namespace ft::compiler
