// What differs between two sets of tensors.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "tools/ftckpt/tensor_side.h"

namespace ft::ckpt {

// Which tensors of two sides are of one name, and which have no partner. Names under which Hugging Face's
// files hold a model without its head are the same ("wte.weight", "transformer.wte.weight"). Of two sides of
// which one is a checkpoint, the optimizer's tensors, buffers that transformers ignores, and a head that is
// tied in the checkpoint need no partner; the head is compared with the embedding.
struct Pairing {
  std::vector<std::pair<size_t, size_t>> pairs;  // in the order of A
  std::vector<size_t> only_a, only_b;
  size_t left_out = 0;  // tensors that need no partner and have none
};
Pairing PairTensors(const TensorSide& a, const TensorSide& b);

struct TensorDifference {
  bool same_shape = true;  // else nothing was compared
  uint64_t elements = 0;
  uint64_t differing = 0;
  double absolute = 0;  // the largest |a - b|; NaN when one of the two is NaN
  double relative = 0;  // the largest |a - b| / max(|a|, |b|), likewise
  bool equal() const { return same_shape && differing == 0; }
};

// Elements of one type are equal when their bits are; of two types when their values are (exactly, NaN and
// NaN too). Reads both in pieces. Errors: those of TensorSide::Read.
absl::StatusOr<TensorDifference> CompareTensors(TensorSide& a, size_t in_a, TensorSide& b, size_t in_b);

}  // namespace ft::ckpt
