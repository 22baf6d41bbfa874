// Writes what one rank has to write of a checkpoint.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "runtime/checkpoint/state/block_sums.h"
#include "runtime/checkpoint/state/file_layout.h"
#include "runtime/checkpoint/state/share.h"

namespace ft {

// Where the bytes of the state come from.
class StateSource {
 public:
  virtual ~StateSource() = default;
  // `bytes` that begin `offset` bytes behind the beginning of an extent that this rank writes: where they
  // lie, or in `scratch`, which has room for them. They stay until the next call.
  virtual absl::StatusOr<const std::byte*> Get(const Extent& extent, uint64_t offset, uint64_t bytes,
                                               std::byte* scratch) = 0;
};

// Bytes of a file that another rank writes for their owner.
struct Fragment {
  uint32_t file = 0;
  uint64_t offset = 0;
  std::string bytes;
};

// What came of one rank's share, or of several.
struct WrittenShare {
  std::vector<SegmentSum> sums;     // of all of the share
  std::vector<Fragment> fragments;  // not written: for rank 0

  void Append(WrittenShare other);
};

// As bytes for a message, and back. Errors: Internal for anything that Serialize does not make.
std::string Serialize(const WrittenShare& written);
absl::StatusOr<WrittenShare> ParseWrittenShare(std::string_view bytes);

// Writes the share into files in `folder`, made where they are not there, and fsyncs them and the folder:
// when it returns, they are on the disk. Room is asked for before anything is written. What is for rank 0 is
// returned with the sums. Errors: those of `source`; the system's (exit status 74).
absl::StatusOr<WrittenShare> WriteShare(const Share& share, const std::string& folder, StateSource& source);

// What all ranks have left to rank 0, into files that are there, and fsyncs these. Errors: the system's.
absl::Status WriteFragments(const FileLayout& layout, const std::string& folder,
                            std::vector<Fragment> fragments);

// A file with `contents` in `folder`, new, and fsynced.
absl::Status WriteSyncedFile(const std::string& folder, const std::string& name, std::string_view contents);

}  // namespace ft
