// Reads safetensors checkpoints, of one file or sharded over several.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "runtime/base/mapped_file.h"
#include "runtime/checkpoint/safetensors_dtype.h"

namespace ft {

// A checkpoint, mapped. Everything its headers promise is checked when it is opened, so reading cannot fail
// on them. Thread-safe once open.
class SafetensorsReader {
 public:
  struct Entry {
    std::string name;
    SafetensorsDType dtype;
    std::vector<int64_t> shape;       // empty: a scalar
    int64_t num_elements;             // product of the shape
    absl::Span<const uint8_t> bytes;  // little-endian, row-major, exactly num_elements * SizeOf(dtype)
    int file;                         // index into files()
  };

  // `path` is a .safetensors file, a "*.safetensors.index.json" that lists the files of a sharded checkpoint
  // (beside it), or a folder that holds "model.safetensors" or "model.safetensors.index.json". Errors:
  // NotFound, PermissionDenied, Internal from the system (exit status 74). InvalidArgument or DataLoss (65):
  // a header that is longer than the file or than 100 MB, is not the JSON object the format asks for (with
  // the byte where), has a duplicate name, an unknown dtype, an offset outside the file, or a size that is
  // not shape x dtype; tensors that overlap or leave holes; an index that names a tensor its file lacks. Each
  // names the file and tensor.
  static absl::StatusOr<std::unique_ptr<SafetensorsReader>> Open(const std::string& path);

  // In the order of their data, file after file.
  absl::Span<const Entry> entries() const { return entries_; }

  // Null when there is none. O(1).
  const Entry* Find(std::string_view name) const;

  // The files, in the order they were read; error messages use these.
  const std::vector<MappedFile>& files() const { return files_; }
  const std::string& FileOf(const Entry& entry) const { return files_[entry.file].path(); }

  // out[i] = element first_element + i as float, for i in [0, count). F64 is rounded to nearest, F16 and BF16
  // are exact (NaN stays NaN). InvalidArgument when the dtype is another one, OutOfRange when the range
  // leaves the tensor.
  absl::Status ReadAsF32(const Entry& entry, int64_t first_element, int64_t count, float* out) const;

 private:
  SafetensorsReader() = default;
  absl::Status AddFile(const std::string& path);
  absl::Status AddIndex(const std::string& path);

  std::vector<MappedFile> files_;
  std::vector<Entry> entries_;
  absl::flat_hash_map<std::string, size_t> by_name_;
};

}  // namespace ft
