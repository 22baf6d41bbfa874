// Writes what one rank has to write of a checkpoint.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "runtime/checkpoint/state/block_sums.h"
#include "runtime/checkpoint/state/file_layout.h"

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

// One rank's part in every checkpoint of a run: made once, since it does not change. Kept by file, so that a
// file is opened once.
class Share {
 public:
  struct Piece {
    uint32_t file = 0;
    std::string name;
    std::string head;             // of the file; empty where another rank writes it
    uint64_t file_bytes = 0;      // of the whole file, where there is a head
    std::vector<Extent> extents;  // by offset
  };

  Share(const FileLayout& layout, int rank);

  const std::vector<Piece>& pieces() const { return pieces_; }
  uint64_t state_bytes() const { return state_bytes_; }  // without heads
  uint64_t bytes() const { return bytes_; }

 private:
  std::vector<Piece> pieces_;
  uint64_t state_bytes_ = 0;
  uint64_t bytes_ = 0;
};

// Writes the share into files in `folder`, made where they are not there, and fsyncs them and the folder:
// when it returns, they are on the disk. Room is asked for before anything is written. Returns the sums of
// what was written. Errors: those of `source`; the system's (exit status 74).
absl::StatusOr<std::vector<SegmentSum>> WriteShare(const Share& share, const std::string& folder,
                                                   StateSource& source);

// A file with `contents` in `folder`, new, and fsynced.
absl::Status WriteSyncedFile(const std::string& folder, const std::string& name, std::string_view contents);

}  // namespace ft
