#include "compiler/shard/strategy.h"

#include "llvm/ADT/STLExtras.h"

#include <algorithm>

namespace ft::compiler {

// clang-format off
static constexpr Strategy table[] = {
  // name                 alias     parameters      gathered copy             gradients       optimizer state  axes
  {"no_shard",           "ddp",   {Extent::whole,  Gathered::never,          Extent::whole,  Extent::whole},  Axes::Replica},
  {"zero1",              "",      {Extent::whole,  Gathered::never,          Extent::whole,  Extent::slice},  Axes::Shard},
  {"shard_grad_op",      "zero2", {Extent::slice,  Gathered::until_backward, Extent::slice,  Extent::slice},  Axes::Shard},
  {"full_shard",         "zero3", {Extent::slice,  Gathered::released,       Extent::slice,  Extent::slice},  Axes::Shard},
  {"hybrid_shard",       "",      {Extent::slice,  Gathered::released,       Extent::slice,  Extent::slice},  Axes::Both},
  {"hybrid_shard_zero2", "",      {Extent::slice,  Gathered::until_backward, Extent::slice,  Extent::slice},  Axes::Both},
};
// clang-format on

llvm::ArrayRef<Strategy> strategies() { return table; }

const Strategy *lookupStrategy(llvm::StringRef name) {
  std::string normal = name.lower();
  std::replace(normal.begin(), normal.end(), '-', '_');
  const Strategy *row = llvm::find_if(
      table, [&](const Strategy &s) { return s.name == normal || (!s.alias.empty() && s.alias == normal); });
  return row == std::end(table) ? nullptr : row;
}

std::vector<std::string> strategyNames() {
  std::vector<std::string> names;
  for (const Strategy &s : table) {
    names.push_back(s.name.str());
    if (!s.alias.empty())
      names.push_back(s.alias.str());
  }
  return names;
}

} // namespace ft::compiler
