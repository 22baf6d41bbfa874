// Other inputs of a model, a row for each document of a .ftd file.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "runtime/data/data_inputs.h"
#include "runtime/data/ftd_file.h"

namespace ft {

// Integers are taken from any integers whose values the input can hold; truth values from BOOL or U8 of 0 and
// 1; f32 and bf16 from the same.
class DocumentTensors {
 public:
  // `tensors` are the inputs that a file has, and belong to it. Inputs that the file has a tensor for are
  // filled by it, whatever else would fill them; `inputs` says by `filling` TENSOR then. InvalidArgument, one
  // line that names `path` and the tensor: one that no input takes, of another type or shape, with a value
  // that the input cannot have, or none for an input that nothing else fills.
  static absl::StatusOr<DocumentTensors> Make(absl::Span<const FtdFile::Input> tensors, DataInputs& inputs,
                                              const std::string& path);

  // Row `document` of each: that of input i to rows[i]. Allocates nothing; thread-safe.
  void Fill(int64_t document, absl::Span<void* const> rows) const;

 private:
  struct Field {
    size_t input;
    proto::DType dtype;
    SafetensorsDType stored;
    int64_t elements;  // of a row
    const uint8_t* data;
  };
  std::vector<Field> fields_;
};

}  // namespace ft
