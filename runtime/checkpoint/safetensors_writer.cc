#include "runtime/checkpoint/safetensors_writer.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "absl/memory/memory.h"
#include "runtime/base/status_macros.h"

namespace ft {
absl::StatusOr<std::unique_ptr<SafetensorsWriter>> SafetensorsWriter::Create(
    const std::string& path, absl::Span<const TensorSpec> tensors) {
  auto writer = absl::WrapUnique(new SafetensorsWriter());
  absl::flat_hash_set<std::string> seen;
  uint64_t end = 0;
  for (const TensorSpec& tensor : tensors) {
    if (tensor.name.empty() || tensor.name == "__metadata__" || !seen.insert(tensor.name).second) {
      return absl::InvalidArgumentError(
          fmt::format("'{}': tensor name '{}' is empty, reserved or given twice", path, tensor.name));
    }
    FT_RETURN_IF_ERROR(CheckTensor(tensor));
    end += tensor.bytes();
    writer->names_.push_back(tensor.name);
    writer->ends_.push_back(end);
  }
  FT_ASSIGN_OR_RETURN(writer->file_, AtomicFile::Create(path));
  FT_RETURN_IF_ERROR(writer->file_->Append(SafetensorsHead(tensors)));
  return writer;
}

absl::Status SafetensorsWriter::Append(const void* data, size_t bytes) {
  if (bytes > total_bytes() - written_) {
    return absl::OutOfRangeError(
        fmt::format("'{}': {} bytes of data come after {} of the {} that the header promised", file_->path(),
                    bytes, written_, total_bytes()));
  }
  FT_RETURN_IF_ERROR(file_->Append(data, bytes));
  written_ += bytes;
  return absl::OkStatus();
}

absl::Status SafetensorsWriter::Commit() {
  if (written_ != total_bytes()) {
    const size_t tensor = std::upper_bound(ends_.begin(), ends_.end(), written_) - ends_.begin();
    return absl::FailedPreconditionError(
        fmt::format("'{}': {} of {} bytes were written; the data of tensor '{}' is "
                    "not complete",
                    file_->path(), written_, total_bytes(), names_[tensor]));
  }
  return file_->Commit();
}

}  // namespace ft
