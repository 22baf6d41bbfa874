#include "runtime/checkpoint/state/block_sums.h"

#include <libdeflate.h>
#include <zlib.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "fmt/format.h"

namespace ft {

uint32_t Crc32(uint32_t crc, const void* data, size_t bytes) { return libdeflate_crc32(crc, data, bytes); }

void SegmentSums::Add(uint32_t file, uint64_t offset, const void* data, uint64_t bytes) {
  const char* at = static_cast<const char*>(data);
  while (bytes > 0) {
    const uint64_t now = std::min(bytes, kSumBlockBytes - offset % kSumBlockBytes);
    const bool goes_on = !segments_.empty() && segments_.back().file == file &&
                         segments_.back().offset + segments_.back().bytes == offset &&
                         offset % kSumBlockBytes != 0;
    if (!goes_on) segments_.push_back({.file = file, .crc = 0, .offset = offset, .bytes = 0});
    SegmentSum& segment = segments_.back();
    segment.crc = Crc32(segment.crc, at, now);
    segment.bytes += now;
    at += now;
    offset += now;
    bytes -= now;
  }
}

absl::StatusOr<std::vector<FileSums>> JoinSums(size_t num_files, std::vector<SegmentSum> segments) {
  std::sort(segments.begin(), segments.end(), [](const SegmentSum& a, const SegmentSum& b) {
    return std::pair(a.file, a.offset) < std::pair(b.file, b.offset);
  });
  std::vector<FileSums> files(num_files);
  for (const SegmentSum& segment : segments) {
    if (segment.file >= num_files || files[segment.file].bytes != segment.offset)
      return absl::InternalError(
          fmt::format("bytes {} of file {} of a checkpoint were written twice or by nobody", segment.offset,
                      segment.file));
    FileSums& file = files[segment.file];
    if (segment.offset % kSumBlockBytes == 0) {
      file.blocks.push_back(segment.crc);
    } else {
      file.blocks.back() = static_cast<uint32_t>(
          crc32_combine(file.blocks.back(), segment.crc, static_cast<z_off_t>(segment.bytes)));
    }
    file.bytes += segment.bytes;
  }
  return files;
}

}  // namespace ft
