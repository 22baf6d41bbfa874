#include "runtime/checkpoint/state/share_writer.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <map>
#include <string_view>
#include <utility>

#include "runtime/base/posix_error.h"
#include "runtime/base/regular_file.h"
#include "runtime/base/status_macros.h"
#include "runtime/checkpoint/state/folder.h"

namespace ft {
namespace {

constexpr uint64_t kChunkBytes = uint64_t{8} << 20;

absl::Status WriteAt(const OpenFile& file, const std::string& path, uint64_t offset, const void* data,
                     uint64_t bytes) {
  const char* from = static_cast<const char*>(data);
  while (bytes > 0) {
    const ssize_t written = pwrite(file.fd(), from, bytes, static_cast<off_t>(offset));
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return PosixError(written < 0 ? errno : ENOSPC, "write", path);
    from += written;
    offset += static_cast<uint64_t>(written);
    bytes -= static_cast<uint64_t>(written);
  }
  return absl::OkStatus();
}

// Extents that follow each other in the file are asked for at once. Not all file systems can promise room.
absl::Status Reserve(const OpenFile& file, const std::string& path, const Share::Piece& piece) {
  uint64_t begin = 0, end = piece.head.size();
  const auto reserve = [&]() -> absl::Status {
    if (end == begin) return absl::OkStatus();
    while (fallocate(file.fd(), 0, static_cast<off_t>(begin), static_cast<off_t>(end - begin)) != 0) {
      if (errno == EINTR) continue;
      if (errno == EOPNOTSUPP || errno == ENOSYS) return absl::OkStatus();
      return PosixError(errno, "write", path);
    }
    return absl::OkStatus();
  };
  for (const Extent& extent : piece.extents) {
    if (extent.offset != end) {
      FT_RETURN_IF_ERROR(reserve());
      begin = extent.offset;
    }
    end = extent.offset + extent.bytes;
  }
  return reserve();
}

// Bytes on their way into one file, and their sums. Those that come in the chunk are collected there, since
// tensors may be small.
class PieceWriter {
 public:
  PieceWriter(const Share::Piece& piece, const OpenFile& file, const std::string& path,
              std::vector<std::byte>& chunk, SegmentSums& sums)
      : piece_(piece), file_(file), path_(path), chunk_(chunk), sums_(sums) {}

  absl::Status Write(StateSource& source) {
    FT_RETURN_IF_ERROR(Reserve(file_, path_, piece_));
    if (!piece_.head.empty()) {
      // Should a file of a save that failed still be there.
      if (ftruncate(file_.fd(), static_cast<off_t>(piece_.file_bytes)) != 0)
        return PosixError(errno, "write", path_);
      FT_RETURN_IF_ERROR(Put(0, piece_.head.data(), piece_.head.size()));
    }
    for (const Extent& extent : piece_.extents) FT_RETURN_IF_ERROR(Add(extent, source));
    FT_RETURN_IF_ERROR(Flush());
    return fsync(file_.fd()) == 0 ? absl::OkStatus() : PosixError(errno, "write", path_);
  }

 private:
  absl::Status Add(const Extent& extent, StateSource& source) {
    for (uint64_t at = 0; at < extent.bytes;) {
      if (extent.offset + at != begin_ + used_ || used_ == chunk_.size()) FT_RETURN_IF_ERROR(Flush());
      if (used_ == 0) begin_ = extent.offset + at;
      const uint64_t now = std::min(chunk_.size() - used_, extent.bytes - at);
      std::byte* const scratch = chunk_.data() + used_;
      FT_ASSIGN_OR_RETURN(const std::byte* const from, source.Get(extent, at, now, scratch));
      if (from == scratch) {
        used_ += now;
      } else {
        FT_RETURN_IF_ERROR(Flush());
        FT_RETURN_IF_ERROR(Put(extent.offset + at, from, now));
      }
      at += now;
    }
    return absl::OkStatus();
  }

  absl::Status Flush() {
    if (used_ == 0) return absl::OkStatus();
    return Put(begin_, chunk_.data(), std::exchange(used_, 0));
  }

  absl::Status Put(uint64_t offset, const void* data, uint64_t bytes) {
    sums_.Add(piece_.file, offset, data, bytes);
    return WriteAt(file_, path_, offset, data, bytes);
  }

  const Share::Piece& piece_;
  const OpenFile& file_;
  const std::string& path_;
  std::vector<std::byte>& chunk_;
  SegmentSums& sums_;
  uint64_t begin_ = 0;  // in the file, of what is in the chunk
  uint64_t used_ = 0;
};

}  // namespace

Share::Share(const FileLayout& layout, int rank) {
  std::map<uint32_t, Piece> by_file;
  for (const Extent& extent : layout.WrittenBy(rank)) {
    by_file[extent.file].extents.push_back(extent);
    state_bytes_ += extent.bytes;
  }
  for (int f = 0; f < layout.num_files(); ++f) {
    if (layout.HeadWriter(f) != rank) continue;
    LayoutFile file = layout.File(f);
    Piece& piece = by_file[static_cast<uint32_t>(f)];
    piece.head = std::move(file.head);
    piece.file_bytes = file.bytes;
  }
  bytes_ = state_bytes_;
  for (auto& [file, piece] : by_file) {
    piece.file = file;
    piece.name = layout.FileName(static_cast<int>(file));
    bytes_ += piece.head.size();
    pieces_.push_back(std::move(piece));
  }
}

absl::StatusOr<std::vector<SegmentSum>> WriteShare(const Share& share, const std::string& folder,
                                                   StateSource& source) {
  SegmentSums sums;
  std::vector<std::byte> chunk(kChunkBytes);
  for (const Share::Piece& piece : share.pieces()) {
    const std::string path = folder + "/" + piece.name;
    const OpenFile file(open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0666));
    if (file.fd() < 0) return PosixError(errno, "write", path);
    FT_RETURN_IF_ERROR(PieceWriter(piece, file, path, chunk, sums).Write(source));
  }
  FT_RETURN_IF_ERROR(SyncPath(folder));
  return sums.segments();
}

absl::Status WriteSyncedFile(const std::string& folder, const std::string& name, std::string_view contents) {
  const std::string path = folder + "/" + name;
  const OpenFile file(open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0666));
  if (file.fd() < 0) return PosixError(errno, "write", path);
  FT_RETURN_IF_ERROR(WriteAt(file, path, 0, contents.data(), contents.size()));
  return fsync(file.fd()) == 0 ? absl::OkStatus() : PosixError(errno, "write", path);
}

}  // namespace ft
