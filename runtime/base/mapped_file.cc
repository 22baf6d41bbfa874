#include "runtime/base/mapped_file.h"

#include <sys/mman.h>

#include <cerrno>
#include <utility>

#include "runtime/base/posix_error.h"
#include "runtime/base/regular_file.h"
#include "runtime/base/status_macros.h"

namespace ft {

absl::StatusOr<MappedFile> MappedFile::Open(const std::string& path, Access access) {
  FT_ASSIGN_OR_RETURN(const OpenFile file, OpenRegularFile(path, "open"));
  const size_t size = file.bytes();
  if (size == 0) return MappedFile(path, nullptr, 0);
  void* data = mmap(nullptr, size, PROT_READ, MAP_PRIVATE, file.fd(), 0);
  if (data == MAP_FAILED) return PosixError(errno, "map", path);
  if (access == Access::kSequential) madvise(data, size, MADV_SEQUENTIAL);
  return MappedFile(path, static_cast<const uint8_t*>(data), size);
}

MappedFile::MappedFile(MappedFile&& other) noexcept
    : path_(std::move(other.path_)),
      data_(std::exchange(other.data_, nullptr)),
      size_(std::exchange(other.size_, 0)) {}

MappedFile& MappedFile::operator=(MappedFile&& other) noexcept {
  std::swap(path_, other.path_);
  std::swap(data_, other.data_);
  std::swap(size_, other.size_);
  return *this;
}

MappedFile::~MappedFile() {
  if (data_ != nullptr) munmap(const_cast<uint8_t*>(data_), size_);
}

}  // namespace ft
