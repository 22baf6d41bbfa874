// Clusters: neighbouring ops that run as one generated kernel.
#pragma once

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Pass/Pass.h"
#include "runtime/base/cluster_op.h"

#include <memory>

namespace ft::compiler {

#define GEN_PASS_DECL
#include "compiler/cluster/passes.h.inc"

#define GEN_PASS_REGISTRATION
#include "compiler/cluster/passes.h.inc"

} // namespace ft::compiler
