// Low-rank adapters beside weights that are not trained: the last thing done to a model before it is
// compiled.
#pragma once

#include "mlir/Pass/Pass.h"

#include <memory>

namespace ft::compiler {

#define GEN_PASS_DECL
#include "compiler/adapters/passes.h.inc"

#define GEN_PASS_REGISTRATION
#include "compiler/adapters/passes.h.inc"

} // namespace ft::compiler
