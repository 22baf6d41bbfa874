#include "compiler/shard/strategy.h"

#include "llvm/ADT/STLExtras.h"

#include <algorithm>

namespace ft::compiler {

// clang-format off
static constexpr Strategy table[] = {
  // name           alias    parameters      gathered copy            gradients       optimizer state  axis
  {"no_shard",      "ddp",   Extent::Whole,  Gathered::Never,         Extent::Whole,  Extent::Whole,   Axis::Replica},
  {"shard_grad_op", "zero2", Extent::Slice,  Gathered::UntilBackward, Extent::Slice,  Extent::Slice,   Axis::Shard},
  {"full_shard",    "zero3", Extent::Slice,  Gathered::Released,      Extent::Slice,  Extent::Slice,   Axis::Shard},
};
// clang-format on

llvm::ArrayRef<Strategy> strategies() { return table; }

const Strategy *lookupStrategy(llvm::StringRef name) {
  std::string normal = name.lower();
  std::replace(normal.begin(), normal.end(), '-', '_');
  const Strategy *row =
      llvm::find_if(table, [&](const Strategy &s) { return s.name == normal || s.alias == normal; });
  return row == std::end(table) ? nullptr : row;
}

std::vector<std::string> strategyNames() {
  std::vector<std::string> names;
  for (const Strategy &s : table) {
    names.push_back(s.name.str());
    names.push_back(s.alias.str());
  }
  return names;
}

llvm::StringRef axisName(Axis axis) { return axis == Axis::Shard ? "shard" : "replica"; }

} // namespace ft::compiler
