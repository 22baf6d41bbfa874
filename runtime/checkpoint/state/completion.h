// What makes the files of a checkpoint one: sums, further files, and the manifest, written last.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "runtime/checkpoint/state/file_layout.h"
#include "runtime/checkpoint/state/manifest.h"
#include "runtime/checkpoint/state/share_writer.h"

namespace ft {

// Files of a checkpoint beside those of its layout, by name, with their contents: config.json, indices.
using ExtraFiles = std::vector<std::pair<std::string, std::string>>;

// Into `folder`, which holds the files of the layout: what ranks left to rank 0, `extra`, and last the
// manifest, fsynced. `written` is of all shares; `manifest` says what the checkpoint is of, its form is
// filled in. Errors: those of JoinSums; the system's.
absl::Status CompleteCheckpoint(const FileLayout& layout, const std::string& folder, const ExtraFiles& extra,
                                WrittenShare written, proto::Manifest manifest);

}  // namespace ft
