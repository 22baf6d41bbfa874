// Files that a user names: opened without hanging, read within a bound.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"

namespace ft {

// The most that is read of a model's text and of a configuration. A model of 1000 layers has some 3 MB.
inline constexpr uint64_t kMaxModelBytes = uint64_t{256} << 20;
inline constexpr uint64_t kMaxConfigBytes = uint64_t{1} << 20;

// Owns a file descriptor.
class OpenFile {
 public:
  explicit OpenFile(int fd) : fd_(fd) {}
  OpenFile(OpenFile&& other) noexcept;
  OpenFile& operator=(OpenFile&& other) noexcept;
  ~OpenFile();

  int fd() const { return fd_; }
  uint64_t bytes() const { return bytes_; }  // when it was opened
  void set_bytes(uint64_t bytes) { bytes_ = bytes; }

 private:
  int fd_;
  uint64_t bytes_ = 0;
};

// For reading. A device or a named pipe is refused, and opening one does not wait for a writer. Errors:
// PosixError's "cannot <action> '<path>'"; InvalidArgument for what is not a regular file.
absl::StatusOr<OpenFile> OpenRegularFile(const std::string& path, std::string_view action);

// All of a text: of a regular file, or of a pipe that this process was given ("/dev/stdin", and "/dev/fd/N",
// the shell's <(command)), up to its end. Errors: the above; InvalidArgument, "<path>: larger than ...; this
// is no <what>", for more than `max_bytes`.
absl::StatusOr<std::string> ReadText(const std::string& path, std::string_view what, uint64_t max_bytes);

}  // namespace ft
