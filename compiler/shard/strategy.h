// The strategy table (design, section 5). A strategy is a row; nothing else in the compiler knows its name.
#pragma once

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"

#include <string>
#include <vector>

namespace ft::compiler {

// What a rank holds of something that belongs to a unit.
enum class Extent { Whole, Slice };

// What becomes of a gathered unit after its forward use.
enum class Gathered {
  Never,         // parameters are whole at rest: nothing is gathered
  UntilBackward, // one gather: kept from the first use to the last
  Released,      // gathered anew for every run of ops of one layer that uses it
};

enum class Axis { Shard, Replica };

struct Strategy {
  llvm::StringLiteral name;
  llvm::StringLiteral alias;
  Extent parameters;
  Gathered gathered;
  // Reduced gradients at rest. Whole: all-reduce; Slice: reduce-scatter.
  Extent gradients;
  Extent optimizerState;
  // Mesh axis that all ranks lie on.
  Axis axis;
};

llvm::ArrayRef<Strategy> strategies();

// By name or alias, in any case and with - for _; nullptr when there is none.
const Strategy *lookupStrategy(llvm::StringRef name);

// Names and aliases, for messages.
std::vector<std::string> strategyNames();

// "shard" or "replica", as the `axis` attribute of a collective spells it.
llvm::StringRef axisName(Axis axis);

} // namespace ft::compiler
