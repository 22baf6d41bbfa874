// Other inputs of a model, a row for each document of a .ftd file.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "runtime/data/data_inputs.h"
#include "runtime/data/ftd_file.h"
#include "runtime/data/row_tensor.h"

namespace ft {

class DocumentTensors {
 public:
  // `tensors` are the inputs that a file has, and belong to it. Inputs that the file has a tensor for are
  // filled by it, whatever else would fill them; `inputs` says by `filling` TENSOR then. Errors: those of
  // RowTensor::Make(); InvalidArgument, one line that names `path` and the tensor: one that no input takes,
  // or none for an input that nothing else fills.
  static absl::StatusOr<DocumentTensors> Make(absl::Span<const FtdFile::Input> tensors, DataInputs& inputs,
                                              const std::string& path);

  // Row `document` of each: that of input i to rows[i]. Allocates nothing; thread-safe.
  void Fill(int64_t document, absl::Span<void* const> rows) const {
    for (const auto& [input, tensor] : tensors_) tensor.Fill(document, rows[input]);
  }

 private:
  std::vector<std::pair<size_t, RowTensor>> tensors_;  // and which input they fill
};

}  // namespace ft
