// Reads a checkpoint: any range of any tensor, of any type of checkpoint, with its checksums.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "runtime/base/regular_file.h"
#include "runtime/checkpoint/state/file_layout.h"
#include "runtime/checkpoint/state/manifest.h"

namespace ft {

// Nothing that was not verified leaves it: what is read comes in blocks, each with its checksum, and a file's
// head must be the one that the manifest's state makes. No path of a manifest is used: names follow from the
// type and the number of ranks. Not thread-safe.
class CheckpointReader {
 public:
  // Reads the manifest of the folder. Errors: the system's (exit status 74), NotFound without a manifest;
  // those of ParseManifest and LayoutOf, InvalidArgument for files that do not belong to the state; each
  // names the manifest.
  static absl::StatusOr<std::unique_ptr<CheckpointReader>> Open(const std::string& folder);

  const std::string& folder() const { return folder_; }
  const proto::Manifest& manifest() const { return manifest_; }
  const FileLayout& layout() const { return layout_; }
  DType dtype(uint32_t tensor) const;
  // From files, so far.
  uint64_t bytes_read() const { return bytes_read_; }

  // Elements `range` (in the unit) of a tensor, which has them. Errors: DataLoss, with file and tensor, when
  // a file is shorter or longer than the manifest says, or a checksum or a head is another; the system's.
  absl::Status Read(uint32_t tensor, ElementRange range, void* out);

  // That all files are there and have their sizes and heads, and that those which hold no tensors are whole.
  // By one rank.
  absl::Status VerifyFiles();

  // Every block of every file.
  absl::Status VerifyAll();

  // All files but the manifest, those of the layout first.
  std::vector<std::string> FileNames() const;

  // That a file (of FileNames) is there and has its size; nothing of it is read. Errors: DataLoss, the
  // system's.
  absl::Status CheckSize(const std::string& name) const;

  // Every block of a file (of FileNames), and its head. Errors: DataLoss says what is damaged first, with the
  // tensors there; the system's.
  absl::Status VerifyFile(const std::string& name);

 private:
  struct OpenedFile {
    std::string path;
    OpenFile file{-1};
    FileSums sums;
  };

  CheckpointReader(std::string folder, proto::Manifest manifest, FileLayout layout)
      : folder_(std::move(folder)), manifest_(std::move(manifest)), layout_(std::move(layout)) {}
  absl::Status IndexFiles();
  absl::StatusOr<OpenedFile*> OpenLayoutFile(uint32_t file);
  absl::StatusOr<OpenedFile> OpenListed(const std::string& name) const;
  absl::Status VerifyLayoutFile(int number);
  // What lies in bytes [begin, end) of a file, in words.
  std::string WhatIsIn(const LayoutFile& file, uint64_t begin, uint64_t end) const;
  absl::Status CheckHead(OpenedFile& file, const LayoutFile& layout);
  // Bytes [begin, begin + bytes), of whole blocks that are verified. `what` is for messages.
  absl::Status ReadBytes(OpenedFile& file, uint64_t begin, uint64_t bytes, void* out, std::string_view what);
  absl::Status ReadBlock(OpenedFile& file, uint64_t block, std::byte* out, std::string_view what);

  std::string folder_;
  proto::Manifest manifest_;
  FileLayout layout_;
  std::map<std::string, const proto::Manifest::File*, std::less<>> listed_;
  std::map<std::string, int, std::less<>> numbers_;  // of the layout's files
  std::map<uint32_t, OpenedFile> open_;
  uint64_t bytes_read_ = 0;
  // The block that was read last in part.
  const OpenedFile* cached_file_ = nullptr;
  uint64_t cached_block_ = 0;
  std::vector<std::byte> cache_;
};

}  // namespace ft
