// Which settings go together.
#pragma once

#include <optional>
#include <vector>

#include "tools/ftc/config/layers.h"

namespace ftc {

// A flag replaces what the file says of a setting that means the same in another way: --warmup-steps its
// warmup_ratio. `flags`: by index in Settings().
void LetFlagsReplace(const std::vector<std::optional<Given>>& flags, Effective& effective);

// Completes what follows from other settings (the world size from the mesh); the first pair that contradicts
// each other.
std::optional<Refusal> CheckConsistency(Effective& effective);

// A line for every setting that was given and has no effect beside the others.
void AddRemarks(Effective& effective);

}  // namespace ftc
