// Parameters are read from what the rank holds of their unit, or from a gathered copy.
#pragma once

#include "compiler/shard/strategy.h"
#include "dialects/ft/dialect.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/DenseMap.h"

namespace ft::compiler {

struct UnitPlacement {
  Residency residency;
  bool hostParameters = false; // at rest in host memory
};

using Placements = llvm::DenseMap<mlir::Attribute, UnitPlacement>; // by FlatSymbolRefAttr of the unit

/// Replaces every ft.get in `function` by an ft.view of the unit: of its ft.shard, when it is whole at rest
/// on the device; else of an ft.gather (or ft.fetch, from the host) that is released after the last use that
/// shares it. Uses share a copy as long as no stretch of ops lies between them that uses other units but not
/// this one; always, when the unit is kept until backward.
void insertGathers(mlir::func::FuncOp function, const Placements &placements, mlir::SymbolTable &symbols);

} // namespace ft::compiler
