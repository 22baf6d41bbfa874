// Reads a checkpoint: any range of any tensor, of any type of checkpoint, with its checksums.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "runtime/base/direct_io.h"
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

  // Another reader of the same checkpoint, for another thread: the manifest is not read again, and both count
  // what they read together.
  absl::StatusOr<std::unique_ptr<CheckpointReader>> Duplicate() const;

  const std::string& folder() const { return folder_; }
  const proto::Manifest& manifest() const { return manifest_; }
  const FileLayout& layout() const { return layout_; }
  DType dtype(uint32_t tensor) const;
  // From files, so far.
  uint64_t bytes_read() const { return *bytes_read_; }

  // Elements `range` (in the unit) of a tensor, which has them. Errors: DataLoss, with file and tensor, when
  // a file is shorter or longer than the manifest says, or a checksum or a head is another; the system's.
  absl::Status Read(uint32_t tensor, ElementRange range, void* out);

  // That all files are there and have their sizes and heads, and that those which hold no tensors are whole.
  // By one rank.
  absl::Status VerifyFiles();

  // That it is of the step that the folder's name says, where that is a checkpoint's: one that was put there
  // by hand says nothing of how far its run is. Errors: DataLoss.
  absl::Status CheckStepOfName() const;

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
    bool direct = false;  // read past the page cache
    FileSums sums;
  };

  CheckpointReader(std::string folder, proto::Manifest manifest, FileLayout layout)
      : folder_(std::move(folder)), manifest_(std::move(manifest)), layout_(std::move(layout)) {}
  absl::Status IndexFiles();
  absl::StatusOr<OpenedFile*> OpenLayoutFile(uint32_t file);
  absl::StatusOr<OpenedFile> OpenListed(const std::string& name) const;
  // What lies in bytes [begin, end) of a file, in words.
  std::string WhatIsIn(const LayoutFile& file, uint64_t begin, uint64_t end) const;
  absl::Status CheckHead(OpenedFile& file, const LayoutFile& layout);
  // For messages: what lies in bytes [begin, end) of the file at hand.
  using What = absl::FunctionRef<std::string(uint64_t begin, uint64_t end)>;
  // Bytes [begin, begin + bytes), of whole blocks that are verified.
  absl::Status ReadBytes(OpenedFile& file, uint64_t begin, uint64_t bytes, void* out, What what);
  // `count` blocks that follow each other, to `out`, which has room for whole ones.
  absl::Status ReadBlocks(OpenedFile& file, uint64_t block, uint64_t count, std::byte* out, What what);
  // The block in the window, which is filled with up to `count` where it is not there.
  absl::StatusOr<const std::byte*> BlockInWindow(OpenedFile& file, uint64_t block, uint64_t count, What what);
  absl::Status VerifyBlocks(OpenedFile& file, What what);

  std::string folder_;
  proto::Manifest manifest_;
  FileLayout layout_;
  std::map<std::string, const proto::Manifest::File*, std::less<>> listed_;
  std::map<std::string, int, std::less<>> numbers_;  // of the layout's files
  std::map<uint32_t, OpenedFile> open_;
  std::shared_ptr<std::atomic<uint64_t>> bytes_read_ = std::make_shared<std::atomic<uint64_t>>(0);
  // Blocks that were read last, in part or past the page cache.
  const OpenedFile* window_file_ = nullptr;
  uint64_t window_block_ = 0;
  uint64_t window_blocks_ = 0;
  std::optional<DirectBuffer> window_;
};

}  // namespace ft
