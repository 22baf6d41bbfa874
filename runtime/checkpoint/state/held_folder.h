// A folder of checkpoints that one run has for itself.
#pragma once

#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "runtime/base/regular_file.h"

namespace ft {

// Held from Take until it is destroyed, or the process ends, however that comes. A file in the folder, which
// goes with it, is what is locked: network file systems do not lock folders.
class HeldFolder {
 public:
  // Errors: ResourceExhausted, naming the process, where another one holds it; the system's. Where the file
  // system cannot lock, it holds nothing, and that is no error.
  static absl::StatusOr<HeldFolder> Take(const std::string& folder);
  HeldFolder(HeldFolder&&) = default;
  HeldFolder& operator=(HeldFolder&&) = delete;
  ~HeldFolder();

 private:
  HeldFolder(std::string path, OpenFile file) : path_(std::move(path)), file_(std::move(file)) {}

  std::string path_;
  OpenFile file_;
};

}  // namespace ft
