#include "compiler/shard/names.h"

namespace ft::compiler {

bool matchesGlob(llvm::StringRef pattern, llvm::StringRef name) {
  // The usual scan: on a mismatch the last * takes one character more.
  size_t p = 0, n = 0, star = llvm::StringRef::npos, resume = 0;
  while (n < name.size()) {
    if (p < pattern.size() && (pattern[p] == '?' || (pattern[p] != '*' && pattern[p] == name[n]))) {
      ++p, ++n;
    } else if (p < pattern.size() && pattern[p] == '*') {
      star = p++;
      resume = n;
    } else if (star != llvm::StringRef::npos) {
      p = star + 1;
      n = ++resume;
    } else {
      return false;
    }
  }
  return pattern.drop_front(p).find_first_not_of('*') == llvm::StringRef::npos;
}

NamePatterns::NamePatterns(llvm::ArrayRef<std::string> patterns)
    : patterns(patterns.begin(), patterns.end()), used(patterns.size(), false) {}

bool NamePatterns::matches(llvm::StringRef name) const {
  bool any = false;
  for (size_t i = 0; i < patterns.size(); ++i) {
    if (!matchesGlob(patterns[i], name))
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
