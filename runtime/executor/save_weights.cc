#include "runtime/executor/save_weights.h"

#include <memory>
#include <vector>

#include "runtime/base/status_macros.h"
#include "runtime/checkpoint/safetensors_writer.h"
#include "runtime/executor/weights_stream.h"

namespace ft {
namespace {

// Takes what the stream brings into one file, in the types that tensors have at rest.
class FileSink {
 public:
  static absl::StatusOr<FileSink> Create(std::vector<StreamedTensor> tensors, const std::string& path) {
    std::vector<TensorSpec> specs;
    for (const StreamedTensor& tensor : tensors)
      specs.push_back({tensor.name,
                       tensor.dtype == DType::kBF16 ? SafetensorsDType::kBF16 : SafetensorsDType::kF32,
                       tensor.shape});
    FileSink sink;
    FT_ASSIGN_OR_RETURN(sink.writer_, SafetensorsWriter::Create(path, specs));
    sink.tensors_ = std::move(tensors);
    return sink;
  }

  // A piece is of one unit, whose parameters are of one type.
  absl::Status Take(const std::byte* elements, uint64_t count) {
    const DType dtype = tensors_[tensor_].dtype;
    FT_RETURN_IF_ERROR(writer_->Append(elements, count * SizeOf(dtype)));
    for (taken_ += count; tensor_ < tensors_.size() && taken_ >= tensors_[tensor_].elements; ++tensor_)
      taken_ -= tensors_[tensor_].elements;
    return absl::OkStatus();
  }

  absl::Status Commit() { return writer_->Commit(); }

 private:
  std::unique_ptr<SafetensorsWriter> writer_;
  std::vector<StreamedTensor> tensors_;
  size_t tensor_ = 0;   // that of the next element
  uint64_t taken_ = 0;  // elements of it that came
};

}  // namespace

absl::Status SaveWeights(const proto::Plan& plan, const Executor& executor, Communicator& communicator,
                         const std::string& path) {
  const bool writes = communicator.rank() == 0;
  FileSink sink;
  if (writes) {
    FT_ASSIGN_OR_RETURN(std::vector<StreamedTensor> tensors, TensorsOfStream(plan));
    FT_ASSIGN_OR_RETURN(sink, FileSink::Create(std::move(tensors), path));
  }
  FT_RETURN_IF_ERROR(
      StreamWeights(plan, executor, communicator,
                    [&](const std::byte* elements, uint64_t count) { return sink.Take(elements, count); }));
  return writes ? sink.Commit() : absl::OkStatus();
}

absl::StatusOr<uint64_t> BytesOfWeights(const proto::Plan& plan) {
  uint64_t bytes = 0;
  FT_ASSIGN_OR_RETURN(const std::vector<StreamedTensor> tensors, TensorsOfStream(plan));
  for (const StreamedTensor& tensor : tensors) bytes += tensor.elements * SizeOf(tensor.dtype);
  return bytes;
}

}  // namespace ft
