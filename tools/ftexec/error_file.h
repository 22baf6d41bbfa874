// What torchrun's agent shows of a failed rank.
#pragma once

#include <string>

namespace ft {

// Writes `message` to `path` (TORCHELASTIC_ERROR_FILE) as the agent reads it; nothing when the path is empty.
// A file that cannot be written is no reason to fail in another way than the run already does.
void WriteErrorFile(const std::string& path, const std::string& kind, const std::string& message);

}  // namespace ft
