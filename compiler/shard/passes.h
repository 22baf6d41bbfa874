// Stage `shard`: units, and the collectives that a strategy needs.
#pragma once

#include "mlir/Pass/Pass.h"

#include <memory>

namespace ft::compiler {

#define GEN_PASS_DECL
#include "compiler/shard/passes.h.inc"

#define GEN_PASS_REGISTRATION
#include "compiler/shard/passes.h.inc"

} // namespace ft::compiler
