// Write-then-rename: readers see the old file or the whole new one, never a part.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace ft {

// A new file being written under a temporary name in the folder of its destination. Commit() puts it in
// place; without it, the destructor removes the temporary and the old file (if any) stays as it was. Errors:
// PosixError's codes (exit status 74); after an error every later call returns the same error.
class AtomicFile {
 public:
  // Makes the temporary "<path>.tmp.<pid>.<n>". The folder must exist. A link is followed, so that what it
  // points to is replaced. What exists and is no regular file (/dev/stdout, a FIFO) is written as it stands,
  // without a temporary: its name would be taken from it otherwise.
  static absl::StatusOr<std::unique_ptr<AtomicFile>> Create(std::string path);

  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;
  ~AtomicFile();

  // Adds at the end. Small pieces are collected, large ones go straight to the system.
  absl::Status Append(const void* data, size_t bytes);
  absl::Status Append(std::string_view text) { return Append(text.data(), text.size()); }

  // Flushes; fsyncs, renames the temporary (permissions 0666 less the umask) over `path` and fsyncs the
  // folder. To be called once; nothing may be appended after it. An error of the folder's fsync is one of
  // Commit, too: the new file is in place then, and a power cut may still take it back.
  absl::Status Commit();

  const std::string& path() const { return path_; }

 private:
  AtomicFile(std::string path, std::string temporary, int fd);
  absl::Status Flush();
  absl::Status WriteAll(const char* data, size_t bytes);
  absl::Status Fail(int errnum, std::string_view action);

  std::string path_;
  std::string temporary_;  // empty: written in place
  int fd_ = -1;
  bool committed_ = false;
  std::string buffer_;
  absl::Status status_;
};

// The folder that a file of this name lies in: "." where the name has none.
std::string FolderOf(const std::string& path);

// The whole of `contents` as the file `path`, atomically.
absl::Status WriteFileAtomically(const std::string& path, std::string_view contents);

}  // namespace ft
