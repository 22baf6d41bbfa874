// Patterns of names, as users give them: globs with * and ? (runtime/base/glob.h).
#pragma once

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"

#include <string>
#include <vector>

namespace ft::compiler {

/// A list of patterns that remembers which of them have matched something.
class NamePatterns {
public:
  explicit NamePatterns(llvm::ArrayRef<std::string> patterns);
  bool matches(llvm::StringRef name) const;
  /// The first pattern that no name has matched so far; null when all have.
  const std::string *firstUnmatched() const;

private:
  std::vector<std::string> patterns;
  mutable std::vector<bool> used;
};

} // namespace ft::compiler
