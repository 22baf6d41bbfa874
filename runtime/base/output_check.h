// Whether a file can be written, found out before the work whose result is to go into it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/status.h"

namespace ft {

// By trying, since permissions do not tell all (root, read-only mounts): what exists keeps its bytes, nothing
// new stays behind. `bytes`: how many are going to be written, as far as known; there must be room for them
// on the file system and below the limit on the size of files (ulimit -f). Errors: what the writing would
// fail with later (exit status 74).

// A file that AtomicFile is going to write: a temporary beside it that replaces it.
absl::Status CheckAtomicOutput(const std::string& path, uint64_t bytes);

// That a file may have `bytes` (ulimit -f). ResourceExhausted else.
absl::Status CheckFileLimit(const std::string& path, uint64_t bytes);

// Bytes that this process may still write on the file system of a file or folder; nullopt where it does not
// say.
std::optional<uint64_t> FreeRoom(const std::string& at);

// That the file system of the folder `at` has room for `bytes` more; `path`: what they are for. A system that
// does not say how much it has is believed to have it. ResourceExhausted else.
absl::Status CheckRoom(const std::string& path, const std::string& at, uint64_t bytes);

// A file that is opened where it stands, and made if it is not there. An old file's bytes count as room.
absl::Status CheckInPlaceOutput(const std::string& path, uint64_t bytes);

}  // namespace ft
