#include "runtime/checkpoint/state/share_writer.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <iterator>
#include <string_view>
#include <utility>

#include "runtime/base/direct_io.h"
#include "runtime/base/posix_error.h"
#include "runtime/base/regular_file.h"
#include "runtime/base/status_macros.h"
#include "runtime/checkpoint/state/folder.h"
#include "runtime/checkpoint/state/manifest.pb.h"
#include "runtime/checkpoint/state/write_range.h"

namespace ft {
namespace {

constexpr uint64_t kChunkBytes = uint64_t{8} << 20;

// Extents that follow each other in the file are asked for at once. Not all file systems can promise room.
absl::Status Reserve(int fd, const std::string& path, const Share::Piece& piece) {
  uint64_t begin = 0, end = piece.head.size() - piece.head_sent;
  const auto reserve = [&]() -> absl::Status {
    if (end == begin) return absl::OkStatus();
    while (fallocate(fd, 0, static_cast<off_t>(begin), static_cast<off_t>(end - begin)) != 0) {
      if (errno == EINTR) continue;
      if (errno == EOPNOTSUPP || errno == ENOSYS) return absl::OkStatus();
      return PosixError(errno, "write", path);
    }
    return absl::OkStatus();
  };
  for (const auto& [extent, sent] : piece.parts) {
    if (sent) continue;
    if (extent.offset != end) {
      FT_RETURN_IF_ERROR(reserve());
      begin = extent.offset;
    }
    end = extent.offset + extent.bytes;
  }
  return reserve();
}

// Bytes on their way into one file, and their sums. They are collected in the chunk, since tensors may be
// small; what lies in memory already goes through it only if that is the way past the page cache.
class PieceWriter {
 public:
  PieceWriter(const Share::Piece& piece, const OpenFile& file, const std::string& path,
              const DirectBuffer& chunk, SegmentSums& sums, std::vector<Fragment>& fragments)
      : piece_(piece), file_(file.fd(), path), chunk_(chunk), sums_(sums), fragments_(fragments) {}

  absl::Status Write(StateSource& source) {
    FT_RETURN_IF_ERROR(Reserve(file_.fd(), file_.path(), piece_));
    if (!piece_.head.empty()) {
      // Should a file of a save that failed still be there.
      if (ftruncate(file_.fd(), static_cast<off_t>(piece_.file_bytes)) != 0)
        return PosixError(errno, "write", file_.path());
      const uint64_t here = piece_.head.size() - piece_.head_sent;
      FT_RETURN_IF_ERROR(Add(0, here, [&](uint64_t at, uint64_t, std::byte*) {
        return static_cast<const std::byte*>(static_cast<const void*>(piece_.head.data() + at));
      }));
      if (piece_.head_sent > 0) Send(here, piece_.head.substr(here));
    }
    for (const auto& [extent, sent] : piece_.parts) {
      if (sent) {
        FT_RETURN_IF_ERROR(Send(extent, source));
      } else {
        FT_RETURN_IF_ERROR(
            Add(extent.offset, extent.bytes, [&](uint64_t at, uint64_t now, std::byte* scratch) {
              return source.Get(extent, at, now, scratch);
            }));
      }
    }
    FT_RETURN_IF_ERROR(Flush());
    return fsync(file_.fd()) == 0 ? absl::OkStatus() : PosixError(errno, "write", file_.path());
  }

 private:
  // `get` is as StateSource::Get. The chunk begins and ends where kDirectBytes do in the file, and elements,
  // too.
  template <typename Getter>
  absl::Status Add(uint64_t offset, uint64_t bytes, const Getter& get) {
    for (uint64_t at = 0; at < bytes;) {
      if (offset + at != begin_ + used_ || lead_ + used_ == chunk_.size()) FT_RETURN_IF_ERROR(Flush());
      if (used_ == 0) {
        begin_ = offset + at;
        lead_ = begin_ % kDirectBytes;
      }
      const uint64_t now = std::min(chunk_.size() - lead_ - used_, bytes - at);
      std::byte* const scratch = chunk_.data() + lead_ + used_;
      const absl::StatusOr<const std::byte*> from = get(at, now, scratch);
      FT_RETURN_IF_ERROR(from.status());
      if (*from != scratch && !file_.is_direct()) {
        FT_RETURN_IF_ERROR(Flush());
        FT_RETURN_IF_ERROR(Put(offset + at, *from, now));
      } else {
        if (*from != scratch) std::memcpy(scratch, *from, now);
        used_ += now;
      }
      at += now;
    }
    return absl::OkStatus();
  }

  absl::Status Send(const Extent& extent, StateSource& source) {
    FT_RETURN_IF_ERROR(Flush());
    std::string bytes(extent.bytes, '\0');
    auto* const to = static_cast<std::byte*>(static_cast<void*>(bytes.data()));
    FT_ASSIGN_OR_RETURN(const std::byte* const from, source.Get(extent, 0, extent.bytes, to));
    if (from != to) std::memcpy(to, from, extent.bytes);
    Send(extent.offset, std::move(bytes));
    return absl::OkStatus();
  }

  void Send(uint64_t offset, std::string bytes) {
    sums_.Add(piece_.file, offset, bytes.data(), bytes.size());
    fragments_.push_back({piece_.file, offset, std::move(bytes)});
  }

  absl::Status Flush() {
    if (used_ == 0) return absl::OkStatus();
    return Put(begin_, chunk_.data() + lead_, std::exchange(used_, 0));
  }

  absl::Status Put(uint64_t offset, const std::byte* data, uint64_t bytes) {
    sums_.Add(piece_.file, offset, data, bytes);
    return file_.Write(offset, data, bytes);
  }

  const Share::Piece& piece_;
  RangeWriter file_;
  const DirectBuffer& chunk_;
  SegmentSums& sums_;
  std::vector<Fragment>& fragments_;
  uint64_t begin_ = 0;  // in the file, of what is in the chunk
  uint64_t lead_ = 0;   // and in the chunk
  uint64_t used_ = 0;
};

}  // namespace

void WrittenShare::Append(WrittenShare other) {
  sums.insert(sums.end(), other.sums.begin(), other.sums.end());
  std::move(other.fragments.begin(), other.fragments.end(), std::back_inserter(fragments));
}

std::string Serialize(const WrittenShare& written) {
  proto::WrittenShare message;
  for (const SegmentSum& sum : written.sums) {
    proto::WrittenShare::Segment* segment = message.add_segments();
    segment->set_file(sum.file);
    segment->set_crc(sum.crc);
    segment->set_offset(sum.offset);
    segment->set_bytes(sum.bytes);
  }
  for (const Fragment& fragment : written.fragments) {
    proto::WrittenShare::Fragment* sent = message.add_fragments();
    sent->set_file(fragment.file);
    sent->set_offset(fragment.offset);
    sent->set_contents(fragment.bytes);
  }
  return message.SerializeAsString();
}

absl::StatusOr<WrittenShare> ParseWrittenShare(std::string_view bytes) {
  proto::WrittenShare message;
  if (!message.ParseFromArray(bytes.data(), static_cast<int>(bytes.size())))
    return absl::InternalError("what a rank said of its share was damaged on the way");
  WrittenShare written;
  for (const proto::WrittenShare::Segment& segment : message.segments())
    written.sums.push_back({segment.file(), segment.crc(), segment.offset(), segment.bytes()});
  for (proto::WrittenShare::Fragment& sent : *message.mutable_fragments())
    written.fragments.push_back({sent.file(), sent.offset(), std::move(*sent.mutable_contents())});
  return written;
}

absl::StatusOr<WrittenShare> WriteShare(const Share& share, const std::string& folder, StateSource& source) {
  SegmentSums sums;
  WrittenShare written;
  const DirectBuffer chunk(kChunkBytes);
  for (const Share::Piece& piece : share.pieces()) {
    const std::string path = folder + "/" + piece.name;
    const OpenFile file(open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0666));
    if (file.fd() < 0) return PosixError(errno, "write", path);
    FT_RETURN_IF_ERROR(PieceWriter(piece, file, path, chunk, sums, written.fragments).Write(source));
  }
  FT_RETURN_IF_ERROR(SyncPath(folder));
  written.sums = sums.segments();
  return written;
}

absl::Status WriteFragments(const FileLayout& layout, const std::string& folder,
                            std::vector<Fragment> fragments) {
  std::sort(fragments.begin(), fragments.end(), [](const Fragment& a, const Fragment& b) {
    return std::pair(a.file, a.offset) < std::pair(b.file, b.offset);
  });
  for (size_t i = 0; i < fragments.size();) {
    const uint32_t number = fragments[i].file;
    if (number >= static_cast<uint32_t>(layout.num_files()))
      return absl::InternalError("a rank sent bytes of a file that there is not");
    const std::string path = folder + "/" + layout.FileName(static_cast<int>(number));
    const OpenFile file(open(path.c_str(), O_WRONLY | O_CLOEXEC | O_NOFOLLOW));
    if (file.fd() < 0) return PosixError(errno, "write", path);
    while (i < fragments.size() && fragments[i].file == number) {
      // Whole pages at once: nothing of them has to be read.
      const uint64_t begin = fragments[i].offset;
      std::string bytes;
      for (;
           i < fragments.size() && fragments[i].file == number && fragments[i].offset == begin + bytes.size();
           ++i)
        bytes += fragments[i].bytes;
      FT_RETURN_IF_ERROR(WriteAt(file.fd(), path, begin, bytes.data(), bytes.size()));
    }
    if (fsync(file.fd()) != 0) return PosixError(errno, "write", path);
  }
  return absl::OkStatus();
}

absl::Status WriteSyncedFile(const std::string& folder, const std::string& name, std::string_view contents) {
  const std::string path = folder + "/" + name;
  const OpenFile file(open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0666));
  if (file.fd() < 0) return PosixError(errno, "write", path);
  FT_RETURN_IF_ERROR(WriteAt(file.fd(), path, 0, contents.data(), contents.size()));
  return fsync(file.fd()) == 0 ? absl::OkStatus() : PosixError(errno, "write", path);
}

}  // namespace ft
