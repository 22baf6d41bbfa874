// Stage `schedule`: the order of instructions on their streams.
#pragma once

#include <memory>

#include "dialects/ft/dialect.h"
#include "dialects/ftx/dialect.h"
#include "mlir/Pass/Pass.h"
#include "runtime/plan/target.h"

namespace ft::compiler {

#define GEN_PASS_DECL
#include "compiler/schedule/passes.h.inc"

#define GEN_PASS_REGISTRATION
#include "compiler/schedule/passes.h.inc"

/// With the figures of a machine instead of the name of a shipped target.
std::unique_ptr<mlir::Pass> createScheduleByCostPass(const ScheduleByCostPassOptions &options,
                                                     const Target &figures);

} // namespace ft::compiler
