// What a manifest says, as JSON for scripts.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "runtime/checkpoint/state/checkpoint_reader.h"

namespace ft::ckpt {

// The manifest without checksums and layout; instead the files with their bytes, the mesh, the states with
// their types and, where asked for, the tensors. Texts are bounded, and everything is ASCII.
absl::StatusOr<std::string> JsonOf(const CheckpointReader& reader, bool tensors);

}  // namespace ft::ckpt
