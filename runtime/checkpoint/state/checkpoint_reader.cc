#include "runtime/checkpoint/state/checkpoint_reader.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <iterator>
#include <utility>

#include "absl/memory/memory.h"
#include "fmt/format.h"
#include "runtime/base/posix_error.h"
#include "runtime/base/printable.h"
#include "runtime/base/status_macros.h"
#include "runtime/checkpoint/state/folder.h"

namespace ft {
namespace {

constexpr size_t kMostOpenFiles = 64;
constexpr uint64_t kWindowBlocks = 8;

template <typename... Args>
absl::Status Damaged(std::string_view path, fmt::format_string<Args...> format, Args&&... args) {
  return absl::DataLossError(fmt::format("'{}': {}", path, fmt::format(format, std::forward<Args>(args)...)));
}

// A regular file, no link: a checkpoint has none.
absl::StatusOr<OpenFile> OpenPlainFile(const std::string& path) {
  OpenFile file(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  if (file.fd() < 0 && errno == ELOOP)
    return Damaged(path, "a symbolic link, which a checkpoint does not have");
  if (file.fd() < 0 && errno == ENXIO) return Damaged(path, "no regular file");
  if (file.fd() < 0) return PosixError(errno, "read", path);
  struct stat info = {};
  if (fstat(file.fd(), &info) != 0) return PosixError(errno, "read", path);
  if (!S_ISREG(info.st_mode)) return Damaged(path, "no regular file");
  file.set_bytes(static_cast<uint64_t>(info.st_size));
  return file;
}

// Up to the end of the file, should that come first. With `direct` all but the end of the file is a multiple
// of kDirectBytes, and so is the room at `out`; InvalidArgument: the system does not read this file so.
absl::StatusOr<uint64_t> ReadAt(const OpenFile& file, const std::string& path, uint64_t offset, void* out,
                                uint64_t bytes, bool direct = false) {
  const uint64_t room = direct ? (bytes + kDirectBytes - 1) / kDirectBytes * kDirectBytes : bytes;
  uint64_t done = 0;
  while (done < bytes) {
    const ssize_t got =
        pread(file.fd(), static_cast<char*>(out) + done, room - done, static_cast<off_t>(offset + done));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0 && errno == EINVAL && direct)
      return absl::InvalidArgumentError("cannot be read past the page cache");
    if (got < 0) return PosixError(errno, "read", path);
    if (got == 0) break;
    done += static_cast<uint64_t>(got);
  }
  return std::min(done, bytes);
}

absl::StatusOr<std::string> ReadManifest(const std::string& folder, const std::string& path) {
  absl::StatusOr<OpenFile> opened = OpenPlainFile(path);
  if (absl::IsNotFound(opened.status()) && access(folder.c_str(), F_OK) == 0)
    return Damaged(path, "is missing: no checkpoint, or one that was never finished");
  FT_ASSIGN_OR_RETURN(const OpenFile file, std::move(opened));
  if (file.bytes() > kMaxManifestBytes)
    return absl::InvalidArgumentError(fmt::format("'{}': larger than manifests are", path));
  std::string text(file.bytes(), '\0');
  FT_ASSIGN_OR_RETURN(const uint64_t got, ReadAt(file, path, 0, text.data(), text.size()));
  text.resize(got);
  return text;
}

absl::Status InFile(const absl::Status& status, std::string_view path) {
  return status.ok()
             ? status
             : absl::Status(status.code(), fmt::format("'{}': {}", path, std::string(status.message())));
}

}  // namespace

absl::StatusOr<std::unique_ptr<CheckpointReader>> CheckpointReader::Open(const std::string& folder) {
  const std::string path = folder + "/" + kManifestName;
  FT_ASSIGN_OR_RETURN(const std::string text, ReadManifest(folder, path));
  FT_ASSIGN_OR_RETURN(proto::Manifest manifest, ParseManifest(text, path));
  absl::StatusOr<FileLayout> layout = LayoutOf(manifest);
  FT_RETURN_IF_ERROR(InFile(layout.status(), path));
  auto reader = absl::WrapUnique(new CheckpointReader(folder, std::move(manifest), *std::move(layout)));
  FT_RETURN_IF_ERROR(InFile(reader->IndexFiles(), path));
  return reader;
}

absl::StatusOr<std::unique_ptr<CheckpointReader>> CheckpointReader::Duplicate() const {
  auto reader = absl::WrapUnique(new CheckpointReader(folder_, manifest_, layout_));
  reader->bytes_read_ = bytes_read_;
  FT_RETURN_IF_ERROR(reader->IndexFiles());
  return reader;
}

absl::Status CheckpointReader::IndexFiles() {
  if (manifest_.block_bytes() != kSumBlockBytes)
    return absl::InvalidArgumentError(fmt::format("blocks of {} bytes, and this program knows those of {}",
                                                  manifest_.block_bytes(), kSumBlockBytes));
  for (const proto::Manifest::File& file : manifest_.files()) {
    const bool plain = !file.name().empty() && file.name().find('/') == std::string::npos &&
                       file.name() != "." && file.name() != "..";
    if (!plain || !listed_.emplace(file.name(), &file).second)
      return absl::InvalidArgumentError(
          fmt::format("{} is no name of a file in a checkpoint, or is there twice", Quote(file.name())));
  }
  for (int f = 0; f < layout_.num_files(); ++f) {
    const std::string name = layout_.FileName(f);
    if (!listed_.contains(name))
      return absl::InvalidArgumentError(fmt::format("the file '{}' is missing in it", name));
    numbers_.emplace(name, f);
  }
  return absl::OkStatus();
}

DType CheckpointReader::dtype(uint32_t tensor) const {
  return layout_.state().buffers[layout_.tensors()[tensor].buffer].dtype;
}

absl::StatusOr<CheckpointReader::OpenedFile> CheckpointReader::OpenListed(const std::string& name) const {
  OpenedFile opened;
  opened.path = folder_ + "/" + name;
  absl::StatusOr<FileSums> sums = SumsOf(*listed_.find(name)->second, kSumBlockBytes);
  if (!sums.ok()) return Damaged(folder_ + "/" + kManifestName, "{}", std::string(sums.status().message()));
  opened.sums = *std::move(sums);
  absl::StatusOr<OpenFile> file = OpenPlainFile(opened.path);
  if (absl::IsNotFound(file.status())) return Damaged(opened.path, "is missing, and the manifest lists it");
  FT_ASSIGN_OR_RETURN(opened.file, std::move(file));
  if (opened.file.bytes() != opened.sums.bytes)
    return Damaged(opened.path, "it has {} bytes, and {} by the manifest", opened.file.bytes(),
                   opened.sums.bytes);
  return opened;
}

absl::StatusOr<CheckpointReader::OpenedFile*> CheckpointReader::OpenLayoutFile(uint32_t number) {
  const auto found = open_.find(number);
  if (found != open_.end()) return &found->second;
  if (open_.size() >= kMostOpenFiles) {
    open_.clear();
    window_file_ = nullptr;
  }
  const LayoutFile layout = layout_.File(static_cast<int>(number));
  FT_ASSIGN_OR_RETURN(OpenedFile opened, OpenListed(layout.name));
  if (layout.bytes != opened.sums.bytes)
    return Damaged(opened.path, "the state in the manifest takes {} bytes of it, and it has {}", layout.bytes,
                   opened.sums.bytes);
  opened.direct = TakesDirect(opened.file.fd()) && SetDirect(opened.file.fd(), true);
  OpenedFile& kept = open_.emplace(number, std::move(opened)).first->second;
  FT_RETURN_IF_ERROR(CheckHead(kept, layout));
  return &kept;
}

absl::Status CheckpointReader::CheckHead(OpenedFile& file, const LayoutFile& layout) {
  std::string head(layout.head.size(), '\0');
  const auto what = [&](uint64_t begin, uint64_t end) { return WhatIsIn(layout, begin, end); };
  FT_RETURN_IF_ERROR(ReadBytes(file, 0, head.size(), head.data(), what));
  return head == layout.head ? absl::OkStatus()
                             : Damaged(file.path, "its header lists other tensors than the manifest");
}

absl::Status CheckpointReader::ReadBlocks(OpenedFile& file, uint64_t block, uint64_t count, std::byte* out,
                                          What what) {
  const uint64_t begin = block * kSumBlockBytes;
  const uint64_t bytes = std::min(count * kSumBlockBytes, file.sums.bytes - begin);
  absl::StatusOr<uint64_t> got = ReadAt(file.file, file.path, begin, out, bytes, file.direct);
  if (absl::IsInvalidArgument(got.status()) && file.direct) {
    // The system says so only now.
    file.direct = !SetDirect(file.file.fd(), false);
    got = ReadAt(file.file, file.path, begin, out, bytes, file.direct);
  }
  FT_RETURN_IF_ERROR(got.status());
  *bytes_read_ += *got;
  for (uint64_t at = 0; at < bytes; at += kSumBlockBytes, ++block) {
    const uint64_t of_block = std::min(kSumBlockBytes, bytes - at);
    if (at + of_block <= *got && Crc32(0, out + at, of_block) == file.sums.blocks[block]) continue;
    return Damaged(file.path, "bytes {} to {} are not those that were saved (checksum); {} is damaged",
                   begin + at, begin + at + of_block, what(begin + at, begin + at + of_block));
  }
  return absl::OkStatus();
}

absl::StatusOr<const std::byte*> CheckpointReader::BlockInWindow(OpenedFile& file, uint64_t block,
                                                                 uint64_t count, What what) {
  const bool is_there =
      window_file_ == &file && window_block_ <= block && block < window_block_ + window_blocks_;
  if (!is_there) {
    window_file_ = nullptr;
    count = std::min(count, kWindowBlocks);
    if (!window_.has_value()) window_.emplace(kWindowBlocks * kSumBlockBytes);
    FT_RETURN_IF_ERROR(ReadBlocks(file, block, count, window_->data(), what));
    window_file_ = &file;
    window_block_ = block;
    window_blocks_ = count;
  }
  return window_->data() + (block - window_block_) * kSumBlockBytes;
}

absl::Status CheckpointReader::ReadBytes(OpenedFile& file, uint64_t begin, uint64_t bytes, void* out,
                                         What what) {
  auto* to = static_cast<std::byte*>(out);
  while (bytes > 0) {
    const uint64_t block = begin / kSumBlockBytes, into = begin % kSumBlockBytes;
    const uint64_t of_block = std::min(kSumBlockBytes, file.sums.bytes - block * kSumBlockBytes);
    const uint64_t now = std::min(bytes, of_block - into);
    if (now == of_block && !file.direct) {
      FT_RETURN_IF_ERROR(ReadBlocks(file, block, 1, to, what));
    } else {
      const uint64_t count = file.direct ? (into + bytes + kSumBlockBytes - 1) / kSumBlockBytes : 1;
      FT_ASSIGN_OR_RETURN(const std::byte* const from, BlockInWindow(file, block, count, what));
      std::memcpy(to, from + into, now);
    }
    to += now;
    begin += now;
    bytes -= now;
  }
  return absl::OkStatus();
}

absl::Status CheckpointReader::Read(uint32_t tensor, ElementRange range, void* out) {
  const auto what = [&](uint64_t, uint64_t) {
    return fmt::format("tensor {}", Quote(layout_.tensors()[tensor].name));
  };
  auto* to = static_cast<std::byte*>(out);
  for (const Extent& extent : layout_.Find(tensor, range)) {
    FT_ASSIGN_OR_RETURN(OpenedFile* const file, OpenLayoutFile(extent.file));
    FT_RETURN_IF_ERROR(ReadBytes(*file, extent.offset, extent.bytes, to, what));
    to += extent.bytes;
  }
  return absl::OkStatus();
}

absl::Status CheckpointReader::CheckStepOfName() const {
  const int64_t step = StepOfName(std::string_view(folder_).substr(folder_.rfind('/') + 1));
  const uint64_t steps = manifest_.position().steps();
  if (step < 0 || static_cast<uint64_t>(step) == steps) return absl::OkStatus();
  return absl::DataLossError(fmt::format("'{}/{}' is of {} steps, not of what the folder's name says",
                                         folder_, kManifestName, steps));
}

absl::Status CheckpointReader::VerifyFiles() {
  for (int f = 0; f < layout_.num_files(); ++f)
    FT_RETURN_IF_ERROR(OpenLayoutFile(static_cast<uint32_t>(f)).status());
  for (const auto& [name, listed] : listed_) {
    if (!numbers_.contains(name)) FT_RETURN_IF_ERROR(VerifyFile(name));
  }
  return absl::OkStatus();
}

}  // namespace ft
