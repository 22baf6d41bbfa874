// Arrays of NumPy (.npy).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "runtime/base/mapped_file.h"
#include "runtime/checkpoint/safetensors_dtype.h"

namespace ft {

// A file, mapped: little-endian elements in row-major order. Movable. Thread-safe once open.
class NpyArray {
 public:
  // Errors: those of MappedFile::Open; InvalidArgument or DataLoss (65), one line that names the file: no
  // .npy of version 1 to 3, a header of another form, elements of a type that is not read (f4, i4, i8, u1,
  // b1), in Fortran's order or big-endian, no dimension, another number of bytes than the shape says.
  static absl::StatusOr<NpyArray> Open(const std::string& path);

  const std::string& path() const { return file_.path(); }
  SafetensorsDType dtype() const { return dtype_; }
  const std::vector<int64_t>& shape() const { return shape_; }  // at least one dimension
  absl::Span<const uint8_t> bytes() const { return bytes_; }    // of the elements
  absl::Span<const uint8_t> whole() const { return file_.bytes(); }

 private:
  explicit NpyArray(MappedFile file) : file_(std::move(file)) {}

  MappedFile file_;
  SafetensorsDType dtype_ = SafetensorsDType::kF32;
  std::vector<int64_t> shape_;
  absl::Span<const uint8_t> bytes_;
};

}  // namespace ft
