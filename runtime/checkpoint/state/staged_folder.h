// A folder that comes to be whole or not at all, and never in the place of another.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "runtime/base/regular_file.h"

namespace ft {

// Beside the destination, under a name that no reader takes for a checkpoint and no run cleans up. Movable.
class StagedFolder {
 public:
  // The folders that `destination` lies in are made. What a process that was killed left of the same
  // destination is taken away first. Errors: AlreadyExists when something is at `destination`, or another
  // process is making it; InvalidArgument for a name that a folder cannot get; the system's.
  static absl::StatusOr<StagedFolder> Make(const std::string& destination);

  StagedFolder(StagedFolder&& other) noexcept = default;
  StagedFolder& operator=(StagedFolder&& other) = delete;
  // Takes away what was not published.
  ~StagedFolder();

  const std::string& path() const { return path_; }
  const std::string& destination() const { return destination_; }

  // All files in it must have been fsynced. Errors: AlreadyExists when there is something at the destination
  // by now; the system's.
  absl::Status Publish();

 private:
  StagedFolder(std::string path, std::string destination, OpenFile lock)
      : path_(std::move(path)), destination_(std::move(destination)), lock_(std::move(lock)) {}

  std::string path_;  // empty: published, or moved from
  std::string destination_;
  OpenFile lock_;  // the folder, locked as long as this process works on it
};

}  // namespace ft
