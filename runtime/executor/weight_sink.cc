#include "runtime/executor/weight_sink.h"

#include <algorithm>
#include <utility>

#include "runtime/base/convert_elements.h"
#include "runtime/base/status_macros.h"

namespace ft {

WeightSink::WeightSink(std::vector<StreamedTensor> tensors, std::vector<WeightFile> files,
                       std::optional<DType> dtype, std::string prefix)
    : tensors_(std::move(tensors)), files_(std::move(files)), dtype_(dtype), prefix_(std::move(prefix)) {}

absl::Status WeightSink::Take(const std::byte* elements, uint64_t count) {
  while (count > 0) {
    const StreamedTensor& tensor = tensors_[tensor_];
    if (writer_ == nullptr) {
      const WeightFile& file = files_[file_];
      FT_ASSIGN_OR_RETURN(writer_, SafetensorsWriter::Create(prefix_ + file.name, file.tensors));
    }
    const uint64_t part = std::min(count, tensor.elements - taken_);
    FT_RETURN_IF_ERROR(Append(tensor.dtype, elements, part));
    elements += part * SizeOf(tensor.dtype);
    count -= part;
    taken_ += part;
    if (taken_ == tensor.elements) FT_RETURN_IF_ERROR(EndTensor());
  }
  return absl::OkStatus();
}

absl::Status WeightSink::Append(DType from, const std::byte* elements, uint64_t count) {
  const DType to = dtype_.value_or(from);
  bytes_ += count * SizeOf(to);
  if (to == from) return writer_->Append(elements, count * SizeOf(to));
  converted_.resize(count * SizeOf(to));
  overflowed_ += ConvertElements(from, elements, to, converted_.data(), count);
  return writer_->Append(converted_.data(), converted_.size());
}

absl::Status WeightSink::EndTensor() {
  ++tensor_;
  taken_ = 0;
  if (++tensors_of_file_ < files_[file_].tensors.size()) return absl::OkStatus();
  tensors_of_file_ = 0;
  ++file_;
  return std::exchange(writer_, nullptr)->Commit();
}

}  // namespace ft
