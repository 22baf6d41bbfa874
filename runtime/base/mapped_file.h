// A whole file mapped read-only into memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "absl/types/span.h"

namespace ft {

// Movable, not copyable. The mapping, and so every span made from it, lives as long as the object; moving it
// keeps the addresses. A file that another program truncates meanwhile raises SIGBUS, as with any mapping.
class MappedFile {
 public:
  // How the pages will be touched, a hint to the kernel only: once from front to back, or in any other way.
  enum class Access { kSequential, kNormal };

  // NotFound / PermissionDenied / Internal when the system refuses; InvalidArgument for something that is not
  // a regular file. An empty file is fine and gives an empty span.
  static absl::StatusOr<MappedFile> Open(const std::string& path, Access access);

  MappedFile(MappedFile&& other) noexcept;
  MappedFile& operator=(MappedFile&& other) noexcept;
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;
  ~MappedFile();

  absl::Span<const uint8_t> bytes() const { return {data_, size_}; }
  const std::string& path() const { return path_; }

 private:
  MappedFile(std::string path, const uint8_t* data, size_t size)
      : path_(std::move(path)), data_(data), size_(size) {}

  std::string path_;
  const uint8_t* data_ = nullptr;
  size_t size_ = 0;
};

}  // namespace ft
