// Phase `schedule`: from values to instructions on streams.
#pragma once

#include <memory>

#include "dialects/ft/dialect.h"
#include "dialects/ftx/dialect.h"
#include "mlir/Pass/Pass.h"

namespace ft::compiler {

#define GEN_PASS_DECL
#include "compiler/schedule/passes.h.inc"

#define GEN_PASS_REGISTRATION
#include "compiler/schedule/passes.h.inc"

} // namespace ft::compiler
