// Writes a safetensors file, whole or not at all.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "runtime/base/atomic_file.h"
#include "runtime/checkpoint/safetensors_head.h"

namespace ft {

// Streams tensors of known shapes into a file: the head is written first, then the data as it comes. Nothing
// is at `path` before Commit(), and an old file there stays; without Commit() no trace is left.
class SafetensorsWriter {
 public:
  // InvalidArgument: a duplicate, empty or reserved name, a negative dimension. System errors: exit
  // status 74.
  static absl::StatusOr<std::unique_ptr<SafetensorsWriter>> Create(const std::string& path,
                                                                   absl::Span<const TensorSpec> tensors);

  // The next `bytes` of the data: the tensors one after the other in the order given to Create,
  // little-endian, row-major, in pieces of any size. OutOfRange when more comes than the header promised;
  // ResourceExhausted when the disk is full.
  absl::Status Append(const void* data, size_t bytes);

  // Puts the file in place. FailedPrecondition when data is still missing (says how much, and of which
  // tensor).
  absl::Status Commit();

  uint64_t total_bytes() const { return ends_.empty() ? 0 : ends_.back(); }  // of data, without the header

 private:
  SafetensorsWriter() = default;

  std::unique_ptr<AtomicFile> file_;
  std::vector<std::string> names_;
  std::vector<uint64_t> ends_;  // running sum of tensor sizes
  uint64_t written_ = 0;
};

}  // namespace ft
