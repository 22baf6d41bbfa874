// Machines as YAML files; docs/targets.md has the keys.
#pragma once

#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "runtime/plan/target.h"

namespace ftc {

// `name` stands for the file in errors; the target is called what the file says, else `stem`.
// InvalidArgument, in one line with the place: what ParseTrainYaml refuses; a key that is unknown or missing;
// a value that is no number, not finite or out of its range.
absl::StatusOr<ft::Target> ParseTarget(std::string_view text, const std::string& name,
                                       const std::string& stem);

// The same from a file, by default called as the file is, without its ending. Errors also: PosixError's when
// it cannot be read (74).
absl::StatusOr<ft::Target> ReadTarget(const std::string& path);

// Whether --target=`text` means a file: it has a '/' or ends in .yaml or .yml.
bool IsTargetFile(std::string_view text);

}  // namespace ftc
