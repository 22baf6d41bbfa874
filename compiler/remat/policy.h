// What a user may ask of recomputation: --remat=POLICY.
#pragma once

#include "absl/status/statusor.h"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace ft::compiler {

struct RematPolicy {
  enum class Kind { None, EveryN, Segments, Ops, Budget };
  Kind kind = Kind::None;
  int64_t count = 0; // EveryN: layers of a group; Segments: groups, 0 for the root of the layers
  std::vector<std::string> classes = {}; // Ops: of mlir::ft::kOpClasses
  uint64_t bytes = 0;                    // Budget: per rank
};

/// none, every_n:N, segments:K (sqrt or 0: the root), full, ops:CLASS[,CLASS], budget:BYTES. InvalidArgument,
/// in the form "unknown recomputation policy 'ful', did you mean 'full'?", for anything else.
absl::StatusOr<RematPolicy> parseRematPolicy(std::string_view text);

/// Whether `text` asks for a budget.
bool isBudget(std::string_view text);

} // namespace ft::compiler
