// The commands of ftckpt. Each prints on standard output and returns what the program exits with; errors are
// one line, for standard error.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "tools/ftckpt/conversion.h"

namespace ft::ckpt {

struct ShowOptions {
  std::string path;
  bool tensors = false;
  bool json = false;
};

absl::StatusOr<int> List(const std::string& folder);
absl::StatusOr<int> Show(const ShowOptions& options);
absl::StatusOr<int> Verify(const std::string& path);
absl::StatusOr<int> Diff(const std::string& a, const std::string& b);
absl::StatusOr<int> ConvertTo(const std::string& source, const ConversionRequest& request);

// Of `diff` where something differs.
inline constexpr int kExitDifferent = 1;

}  // namespace ft::ckpt
