// A machine as a target file, docs/targets.md: what tools/ftc/config reads. Texts that nobody reads (sources)
// are not in a Target, so a file that was read and is written again has none but those given here.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "runtime/plan/target.h"

namespace ft {

struct TargetNotes {
  std::string source;                       // of all of it; one line, may be empty
  std::map<uint64_t, std::string> kernels;  // what a timed kernel is, by key; one line each
};

// Figures have nine digits. `target` has passed VerifyTarget.
std::string TargetText(const Target& target, const TargetNotes& notes);

}  // namespace ft
