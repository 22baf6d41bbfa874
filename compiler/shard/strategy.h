// The strategy table (design, section 5). A strategy is a row; nothing else in the compiler knows its name.
#pragma once

#include "dialects/ft/dialect.h"
#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"

#include <string>
#include <vector>

namespace ft::compiler {

using mlir::ft::Extent;
using mlir::ft::Gathered;

// Mesh axes over which gradients are reduced.
enum class Axes {
  Replica, // all ranks on the replica axis
  Shard,   // all ranks on the shard axis
  Both,    // over shard, then over replica
};

// Where the parts of a unit lie. Optimizer state follows `optimizer`; with whole parameters and a sliced
// optimizer the ranks gather the parameters again, in place, after each step.
struct Residency {
  Extent parameters;
  Gathered gathered;
  Extent gradients; // once they are reduced
  Extent optimizer;
};

struct Strategy {
  llvm::StringLiteral name;
  llvm::StringLiteral alias; // empty: none
  Residency residency;
  Axes axes;
};

llvm::ArrayRef<Strategy> strategies();

// By name or alias, in any case and with - for _; nullptr when there is none.
const Strategy *lookupStrategy(llvm::StringRef name);

// Names and aliases, for messages.
std::vector<std::string> strategyNames();

} // namespace ft::compiler
