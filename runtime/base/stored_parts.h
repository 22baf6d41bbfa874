// A tensor that files of weights have in parts: their names in one text, as shells have lists, and their
// shapes.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

namespace ft {

inline constexpr size_t kMostBraceNames = 1 << 16;

// "experts.{0..2}.{w1,w3}.weight": experts.0.w1.weight, experts.0.w3.weight, experts.1.w1.weight, ... A brace
// has numbers from..to, or texts with commas between; braces do not nest. A text without any is one name.
// InvalidArgument: a brace that is not closed, empty or of another form, a name that is empty, more than
// kMostBraceNames.
absl::StatusOr<std::vector<std::string>> ExpandBraces(std::string_view pattern);

// A tensor of a file that is a part of the model's, or all of it.
struct StoredPart {
  std::string name;
  std::vector<int64_t> shape;
};

// The parts, one behind the other, that `stored_as` names of a tensor of this shape: its outermost dimensions
// divided by their number. Empty when it is empty. Errors: those of ExpandBraces; a number of parts that does
// not divide the dimensions.
absl::StatusOr<std::vector<StoredPart>> StoredParts(std::string_view stored_as, std::vector<int64_t> shape);

}  // namespace ft
