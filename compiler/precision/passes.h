// Stage `precision`: the element types of activations, gathered parameters and gradients.
#pragma once

#include "mlir/Pass/Pass.h"

#include <memory>

namespace ft::compiler {

#define GEN_PASS_DECL
#include "compiler/precision/passes.h.inc"

#define GEN_PASS_REGISTRATION
#include "compiler/precision/passes.h.inc"

} // namespace ft::compiler
