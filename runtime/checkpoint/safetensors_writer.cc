#include "runtime/checkpoint/safetensors_writer.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "absl/memory/memory.h"
#include "runtime/base/status_macros.h"
#include "runtime/checkpoint/safetensors_header.h"

namespace ft {
namespace {

constexpr size_t kDataAlignment = 8;

// The name as a JSON string; InvalidArgument when it is not UTF-8, which JSON cannot hold.
absl::StatusOr<std::string> Quoted(const std::string& name) {
  const auto handler = nlohmann::json::error_handler_t::replace;
  std::string text = nlohmann::json(name).dump(-1, ' ', /*ensure_ascii=*/false, handler);
  if (nlohmann::json::parse(text, nullptr, /*allow_exceptions=*/false) != nlohmann::json(name)) {
    return absl::InvalidArgumentError(fmt::format("tensor name {} is not valid UTF-8", text));
  }
  return text;
}

absl::StatusOr<uint64_t> BytesOf(const TensorSpec& tensor) {
  uint64_t bytes = SizeOf(tensor.dtype);
  for (int64_t dim : tensor.shape) {
    if (dim < 0 || __builtin_mul_overflow(bytes, static_cast<uint64_t>(dim), &bytes)) {
      return absl::InvalidArgumentError(
          fmt::format("tensor '{}' cannot have the shape {}", tensor.name, ShapeText(tensor.shape)));
    }
  }
  return bytes;
}

}  // namespace

absl::StatusOr<std::unique_ptr<SafetensorsWriter>> SafetensorsWriter::Create(
    const std::string& path, absl::Span<const TensorSpec> tensors) {
  auto writer = absl::WrapUnique(new SafetensorsWriter());
  std::string header = R"({"__metadata__":{"format":"pt"})";
  absl::flat_hash_set<std::string> seen;
  uint64_t end = 0;
  for (const TensorSpec& tensor : tensors) {
    if (tensor.name.empty() || tensor.name == "__metadata__" || !seen.insert(tensor.name).second) {
      return absl::InvalidArgumentError(
          fmt::format("'{}': tensor name '{}' is empty, reserved or given twice", path, tensor.name));
    }
    FT_ASSIGN_OR_RETURN(const std::string name, Quoted(tensor.name));
    FT_ASSIGN_OR_RETURN(const uint64_t bytes, BytesOf(tensor));
    header += fmt::format(R"(,{}:{{"dtype":"{}","shape":{},"data_offsets":[{},{}]}})", name,
                          Name(tensor.dtype), ShapeText(tensor.shape), end, end + bytes);
    end += bytes;
    writer->names_.push_back(tensor.name);
    writer->ends_.push_back(end);
  }
  header += "}";
  uint64_t header_bytes = (header.size() + kDataAlignment - 1) / kDataAlignment * kDataAlignment;
  header.resize(header_bytes, ' ');
  FT_ASSIGN_OR_RETURN(writer->file_, AtomicFile::Create(path));
  FT_RETURN_IF_ERROR(writer->file_->Append(&header_bytes, sizeof(header_bytes)));
  FT_RETURN_IF_ERROR(writer->file_->Append(header));
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
