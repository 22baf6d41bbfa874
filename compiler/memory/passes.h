// Stage `memory`: when buffers are needed.
#pragma once

#include <memory>

#include "dialects/ftx/dialect.h"
#include "mlir/Pass/Pass.h"

namespace ft::compiler {

#define GEN_PASS_DECL
#include "compiler/memory/passes.h.inc"

#define GEN_PASS_REGISTRATION
#include "compiler/memory/passes.h.inc"

} // namespace ft::compiler
