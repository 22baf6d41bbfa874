// What makes the files of a checkpoint one: sums, further files, and the manifest, written last.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "runtime/checkpoint/state/block_sums.h"
#include "runtime/checkpoint/state/file_layout.h"
#include "runtime/checkpoint/state/manifest.h"

namespace ft {

// Files of a checkpoint beside those of its layout, by name, with their contents: config.json, indices.
using ExtraFiles = std::vector<std::pair<std::string, std::string>>;

// That `folder` has room for so many bytes; before anything is written. What other users of the disk take
// meanwhile is found out when room is reserved. Errors: ResourceExhausted; the system's (exit status 74).
absl::Status CheckRoom(const std::string& folder, uint64_t bytes);

// What a checkpoint of this layout says of its form, whatever it is of.
void SetForm(const FileLayout& layout, proto::Manifest& manifest);

// Into `folder`, which holds the files of the layout: `extra`, and last the manifest, fsynced. `segments` are
// the sums that all writers of the files got; `manifest` has passed SetForm. Errors: those of JoinSums; the
// system's.
absl::Status CompleteCheckpoint(const FileLayout& layout, const std::string& folder, const ExtraFiles& extra,
                                std::vector<SegmentSum> segments, proto::Manifest manifest);

}  // namespace ft
