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

namespace ft {
namespace {

constexpr size_t kMostOpenFiles = 64;

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

// Up to the end of the file, should that come first.
absl::StatusOr<uint64_t> ReadAt(const OpenFile& file, const std::string& path, uint64_t offset, void* out,
                                uint64_t bytes) {
  uint64_t done = 0;
  while (done < bytes) {
    const ssize_t got =
        pread(file.fd(), static_cast<char*>(out) + done, bytes - done, static_cast<off_t>(offset + done));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return PosixError(errno, "read", path);
    if (got == 0) break;
    done += static_cast<uint64_t>(got);
  }
  return done;
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
    cached_file_ = nullptr;
  }
  const LayoutFile layout = layout_.File(static_cast<int>(number));
  FT_ASSIGN_OR_RETURN(OpenedFile opened, OpenListed(layout.name));
  if (layout.bytes != opened.sums.bytes)
    return Damaged(opened.path, "the state in the manifest takes {} bytes of it, and it has {}", layout.bytes,
                   opened.sums.bytes);
  OpenedFile& kept = open_.emplace(number, std::move(opened)).first->second;
  FT_RETURN_IF_ERROR(CheckHead(kept, layout));
  return &kept;
}

absl::Status CheckpointReader::CheckHead(OpenedFile& file, const LayoutFile& layout) {
  std::string head(layout.head.size(), '\0');
  const std::string what = head.size() < kSumBlockBytes
                               ? WhatIsIn(layout, 0, std::min(kSumBlockBytes, layout.bytes))
                               : "the header";
  FT_RETURN_IF_ERROR(ReadBytes(file, 0, head.size(), head.data(), what));
  return head == layout.head ? absl::OkStatus()
                             : Damaged(file.path, "its header lists other tensors than the manifest");
}

absl::Status CheckpointReader::ReadBlock(OpenedFile& file, uint64_t block, std::byte* out,
                                         std::string_view what) {
  const uint64_t begin = block * kSumBlockBytes, bytes = std::min(kSumBlockBytes, file.sums.bytes - begin);
  FT_ASSIGN_OR_RETURN(const uint64_t got, ReadAt(file.file, file.path, begin, out, bytes));
  bytes_read_ += got;
  if (got == bytes && Crc32(0, out, bytes) == file.sums.blocks[block]) return absl::OkStatus();
  return Damaged(file.path, "bytes {} to {} are not those that were saved (checksum); {} is damaged", begin,
                 begin + bytes, what);
}

absl::Status CheckpointReader::ReadBytes(OpenedFile& file, uint64_t begin, uint64_t bytes, void* out,
                                         std::string_view what) {
  auto* to = static_cast<std::byte*>(out);
  while (bytes > 0) {
    const uint64_t block = begin / kSumBlockBytes, into = begin % kSumBlockBytes;
    const uint64_t of_block = std::min(kSumBlockBytes, file.sums.bytes - block * kSumBlockBytes);
    const uint64_t now = std::min(bytes, of_block - into);
    if (now == of_block) {
      FT_RETURN_IF_ERROR(ReadBlock(file, block, to, what));
    } else {
      if (cached_file_ != &file || cached_block_ != block) {
        cached_file_ = nullptr;
        cache_.resize(kSumBlockBytes);
        FT_RETURN_IF_ERROR(ReadBlock(file, block, cache_.data(), what));
        cached_file_ = &file;
        cached_block_ = block;
      }
      std::memcpy(to, cache_.data() + into, now);
    }
    to += now;
    begin += now;
    bytes -= now;
  }
  return absl::OkStatus();
}

absl::Status CheckpointReader::Read(uint32_t tensor, ElementRange range, void* out) {
  const std::string what = fmt::format("tensor {}", Quote(layout_.tensors()[tensor].name));
  auto* to = static_cast<std::byte*>(out);
  for (const Extent& extent : layout_.Find(tensor, range)) {
    FT_ASSIGN_OR_RETURN(OpenedFile* const file, OpenLayoutFile(extent.file));
    FT_RETURN_IF_ERROR(ReadBytes(*file, extent.offset, extent.bytes, to, what));
    to += extent.bytes;
  }
  return absl::OkStatus();
}

absl::Status CheckpointReader::VerifyFiles() {
  for (int f = 0; f < layout_.num_files(); ++f)
    FT_RETURN_IF_ERROR(OpenLayoutFile(static_cast<uint32_t>(f)).status());
  std::vector<std::byte> block(kSumBlockBytes);
  for (const auto& [name, listed] : listed_) {
    if (numbers_.contains(name)) continue;
    FT_ASSIGN_OR_RETURN(OpenedFile file, OpenListed(name));
    for (uint64_t b = 0; b < file.sums.blocks.size(); ++b)
      FT_RETURN_IF_ERROR(ReadBlock(file, b, block.data(), "the file"));
  }
  return absl::OkStatus();
}

}  // namespace ft
