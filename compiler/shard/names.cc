#include "compiler/shard/names.h"

#include "runtime/base/glob.h"

namespace ft::compiler {

NamePatterns::NamePatterns(llvm::ArrayRef<std::string> patterns)
    : patterns(patterns.begin(), patterns.end()), used(patterns.size(), false) {}

bool NamePatterns::matches(llvm::StringRef name) const {
  bool any = false;
  for (size_t i = 0; i < patterns.size(); ++i) {
    if (!::ft::MatchesGlob(patterns[i], name))
      continue;
    used[i] = true;
    any = true;
  }
  return any;
}

const std::string *NamePatterns::firstUnmatched() const {
  for (size_t i = 0; i < patterns.size(); ++i)
    if (!used[i])
      return &patterns[i];
  return nullptr;
}

} // namespace ft::compiler
