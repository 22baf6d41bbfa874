// A machine as a target file, docs/targets.md: what tools/ftc/config reads. Texts that nobody reads (sources)
// are not in a Target, so a file that was read and is written again has none but those given here.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "runtime/plan/target.h"

namespace ft {

// What a plan can carry and nothing more: a timed kernel has no less than 30 bytes there, and in a file eight
// entries (its keys, and their values) in a line of no more than 300 bytes.
inline constexpr size_t kMostTargetEntries = kMostTargetBytes / 3;
inline constexpr size_t kMostTargetTextBytes = 16 * kMostTargetBytes;
inline constexpr size_t kLongestKernelNote = 160;  // bytes

struct TargetNotes {
  std::string source;  // of all of it; one line, may be empty
  std::map<uint64_t, std::string>
      kernels;  // what a timed kernel is, by key; kLongestKernelNote of each are written
};

// Figures have nine digits. `target` has passed VerifyTarget. No longer than kMostTargetTextBytes.
std::string TargetText(const Target& target, const TargetNotes& notes);

}  // namespace ft
