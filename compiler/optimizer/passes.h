// Stage `optimizer`: gradient norm, clipping and the AdamW step, and the program that starts the parameters.
#pragma once

#include "mlir/Pass/Pass.h"

#include <memory>

namespace ft::compiler {

#define GEN_PASS_DECL
#include "compiler/optimizer/passes.h.inc"

#define GEN_PASS_REGISTRATION
#include "compiler/optimizer/passes.h.inc"

} // namespace ft::compiler
