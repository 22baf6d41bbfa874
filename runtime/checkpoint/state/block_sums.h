// Checksums of the files of a checkpoint: one for each block of a fixed number of bytes, of whoever wrote its
// parts.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"

namespace ft {

inline constexpr uint64_t kSumBlockBytes = uint64_t{1} << 20;

// CRC-32 as zlib and gzip have it, of `data` behind what gave `crc` (0 for nothing). Every damage confined to
// 32 neighbouring bits is found with certainty. No protection from a forger.
uint32_t Crc32(uint32_t crc, const void* data, size_t bytes);

// The sum of bytes that one rank wrote without a gap, inside of one block.
struct SegmentSum {
  uint32_t file = 0;
  uint32_t crc = 0;
  uint64_t offset = 0;  // from the beginning of the file
  uint64_t bytes = 0;
};

// Takes what a rank writes, in the order of files and offsets.
class SegmentSums {
 public:
  // `bytes` at `offset` of `file`. Memory for sums is allocated as they come.
  void Add(uint32_t file, uint64_t offset, const void* data, uint64_t bytes);
  const std::vector<SegmentSum>& segments() const { return segments_; }

 private:
  std::vector<SegmentSum> segments_;
};

struct FileSums {
  uint64_t bytes = 0;
  std::vector<uint32_t> blocks;
};

// Puts together what all ranks wrote. Errors: Internal when the segments of a file leave a gap or overlap.
absl::StatusOr<std::vector<FileSums>> JoinSums(size_t num_files, std::vector<SegmentSum> segments);

}  // namespace ft
