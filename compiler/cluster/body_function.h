// The function of a group of ops.
#pragma once

#include "compiler/codegen/cluster_body.h"
#include "llvm/ADT/SetVector.h"

#include <map>

namespace ft::compiler {

/// Whether an op makes it of nothing: ft.fill, ft.iota.
bool isConstant(mlir::Value value);

/// Ops of one block, in its order. Values that they read and do not make are its inputs, those that others
/// read its results. Constants are no members: whoever reads one has it.
struct OpGroup {
  explicit OpGroup(llvm::ArrayRef<mlir::Operation *> ops);

  llvm::SmallVector<mlir::Operation *> ops;
  llvm::SmallSetVector<mlir::Value, 8> inputs;
  llvm::SmallVector<mlir::Value> results;
};

/// A private function with the ops of `group`, in no module, and what a plan has of it; null where the group
/// is no body of a cluster.
struct BodyFunction {
  mlir::OwningOpRef<mlir::func::FuncOp> function;
  ClusterBody body;
  llvm::SmallVector<int64_t> streams = {}; // of the group, for the draws 0, 1, ... of the body
};
std::optional<BodyFunction> makeBodyFunction(const OpGroup &group);
/// Why there is none.
std::string refusalOf(const OpGroup &group);

/// Bodies of groups, made once for all that are alike: equal layers have equal groups.
class BodyFunctions {
public:
  /// Null where the group is no body of a cluster.
  const BodyFunction *of(const OpGroup &group);

private:
  std::map<std::vector<const void *>, std::optional<BodyFunction>> made;
};

} // namespace ft::compiler
