// One side of a comparison: tensors by name, read a piece at a time.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "runtime/checkpoint/safetensors_dtype.h"

namespace ft::ckpt {

struct SideTensor {
  std::string name;
  std::vector<int64_t> shape;
  SafetensorsDType dtype = SafetensorsDType::kF32;
  uint64_t elements = 0;
  bool of_optimizer = false;
};

class TensorSide {
 public:
  virtual ~TensorSide() = default;

  const std::vector<SideTensor>& tensors() const { return tensors_; }
  // Where its output layer has no tensor of its own: the embedding's name; else empty.
  const std::string& tied_head() const { return tied_head_; }
  bool is_checkpoint() const { return is_checkpoint_; }  // else safetensors of anybody
  const std::string& title() const { return title_; }    // one line that says what it is

  // Elements [first, first + count) of a tensor, as they are in the file. Errors: DataLoss for damage; the
  // system's (exit status 74).
  virtual absl::Status Read(size_t tensor, uint64_t first, uint64_t count, void* out) = 0;

 protected:
  std::vector<SideTensor> tensors_;
  std::string tied_head_;
  bool is_checkpoint_ = false;
  std::string title_;
};

// A checkpoint, a folder of checkpoints (the newest with a manifest), a safetensors file, an index of such,
// or a folder of transformers. Errors: those of opening them; InvalidArgument for anything else.
absl::StatusOr<std::unique_ptr<TensorSide>> OpenSide(const std::string& path);

}  // namespace ft::ckpt
