// Writes ranges of a file, whatever a system call leaves undone.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace ft {

// Errors: the system's, which name `path`.
absl::Status WriteAt(int fd, const std::string& path, uint64_t offset, const void* data, uint64_t bytes);

// Of one file, past the page cache where that can be done: for bytes that nobody reads soon.
class RangeWriter {
 public:
  // Both must outlive it.
  RangeWriter(int fd, const std::string& path);

  int fd() const { return fd_; }
  const std::string& path() const { return path_; }
  // Whether bytes go past the page cache. They have to lie in memory as they do in the file, modulo
  // kDirectBytes; those of others, and what is left at the ends, go through it.
  bool is_direct() const { return direct_; }

  absl::Status Write(uint64_t offset, const std::byte* data, uint64_t bytes);

 private:
  absl::StatusOr<uint64_t> WriteDirect(uint64_t offset, const std::byte* data, uint64_t bytes);

  int fd_;
  const std::string& path_;
  bool direct_;
};

}  // namespace ft
