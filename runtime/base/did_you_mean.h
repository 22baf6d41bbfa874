// Suggestions for mistyped names.
#pragma once

#include <string>
#include <string_view>

#include "absl/types/span.h"

namespace ft {

// The candidate nearest to `word` in single-character edits and swaps of neighbours, when at most a third of
// its characters (and at least one) differ; empty when none is near. The first of equals.
std::string_view NearestName(std::string_view word, absl::Span<const std::string_view> candidates);

// "unknown <what> 'ful_shard', did you mean 'full_shard'?", or with no near candidate
// "unknown <what> 'x', expected one of: a, b, c".
std::string UnknownName(std::string_view what, std::string_view word,
                        absl::Span<const std::string_view> candidates);

}  // namespace ft
