// Takes what a stream of weights brings into safetensors files.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "runtime/base/dtype.h"
#include "runtime/checkpoint/safetensors_writer.h"
#include "runtime/executor/weights_stream.h"

namespace ft {

// A file and the tensors in it, in the order of the stream.
struct WeightFile {
  std::string name;
  std::vector<TensorSpec> tensors;
};

class WeightSink {
 public:
  // `tensors` are those of the stream, and of all files, one after the other; `dtype`: the type that elements
  // become, else that which they have at rest. `prefix` stands before the names of files: "folder/".
  WeightSink(std::vector<StreamedTensor> tensors, std::vector<WeightFile> files, std::optional<DType> dtype,
             std::string prefix);

  // The next elements, as StreamWeights gives them. A file is there when its last tensor is. Errors: those of
  // SafetensorsWriter.
  absl::Status Take(const std::byte* elements, uint64_t count);

  // Whether all came.
  bool IsComplete() const { return tensor_ == tensors_.size(); }
  const std::vector<WeightFile>& files() const { return files_; }
  uint64_t bytes() const { return bytes_; }          // of tensors
  size_t overflowed() const { return overflowed_; }  // finite values that became infinite

 private:
  absl::Status Append(DType from, const std::byte* elements, uint64_t count);
  absl::Status EndTensor();

  const std::vector<StreamedTensor> tensors_;
  const std::vector<WeightFile> files_;
  const std::optional<DType> dtype_;
  const std::string prefix_;
  std::unique_ptr<SafetensorsWriter> writer_;  // of the file whose tensors come by
  size_t file_ = 0, tensor_ = 0, tensors_of_file_ = 0;
  uint64_t taken_ = 0;  // elements of the tensor
  uint64_t bytes_ = 0;
  size_t overflowed_ = 0;
  std::vector<std::byte> converted_;
};

}  // namespace ft
