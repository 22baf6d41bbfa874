// The checkpoint that a path of the command line means.
#pragma once

#include <string>

#include "absl/status/statusor.h"

namespace ft::ckpt {

// Whether there is a manifest, of whatever kind, in the folder.
bool IsCheckpoint(const std::string& path);

// `path`, or of a folder of checkpoints the one that --resume=auto takes: the newest whose files are there,
// of the step that its name says. A line on standard error for each that is passed over. Errors: the system's
// (exit status 74); InvalidArgument when there is none.
absl::StatusOr<std::string> FindCheckpoint(const std::string& path);

// "a folder": the path without slashes at its end.
std::string WithoutSlashes(std::string path);

}  // namespace ft::ckpt
