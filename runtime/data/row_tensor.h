// A tensor of a file, of which an input of the model gets a row for each example.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "runtime/checkpoint/safetensors_dtype.h"
#include "runtime/plan/plan.pb.h"

namespace ft {

// Integers are taken from any integers whose values the input can hold; truth values from BOOL or U8 of 0 and
// 1; f32 and bf16 from the same. Thread-safe.
class RowTensor {
 public:
  // Elements of `dtype`, of `shape`, at any byte of memory that outlives it. InvalidArgument, one line that
  // begins with `what`, "'d.ftd': tensor 'input.labels'": another type or shape than the input's, or a value
  // that it cannot have.
  static absl::StatusOr<RowTensor> Make(SafetensorsDType dtype, const std::vector<int64_t>& shape,
                                        absl::Span<const uint8_t> bytes, const proto::Input& input,
                                        const std::string& what);

  int64_t num_rows() const { return num_rows_; }
  void Fill(int64_t row, void* out) const;  // allocates nothing

 private:
  absl::Status Check(const std::vector<int64_t>& shape, const proto::Input& input,
                     const std::string& what) const;

  SafetensorsDType stored_ = SafetensorsDType::kF32;
  proto::DType dtype_ = proto::F32;
  int64_t num_rows_ = 0;
  int64_t elements_ = 1;  // of a row
  absl::Span<const uint8_t> bytes_;
};

}  // namespace ft
