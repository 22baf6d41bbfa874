// Writes a sequence of tokens into the inputs of a model.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "runtime/data/data_inputs.h"
#include "runtime/data/sequence_layout.h"
#include "runtime/data/token_row.h"

namespace ft {

// What the loss leaves out: -100, as PyTorch has it.
inline constexpr int32_t kLeftOut = -100;

// For each input that sequences of tokens fill, what FillingText says; others are left alone. Positions begin
// with 0 in each piece, segments number the pieces, and padding is a segment of its own with targets that are
// left out. A target is never in another piece: where pieces are packed, the label of the first token of each
// is left out too, which the token before it would be asked for. Allocates nothing; thread-safe.
class SequenceFiller {
 public:
  // `row` is what the layout was made of.
  SequenceFiller(const DataInputs& inputs, const TokenRow& row);

  // Sequence `index` of the layout: that of input i to rows[i].
  void Fill(const SequenceLayout& layout, int64_t index, absl::Span<void* const> rows) const;

 private:
  struct Field {
    size_t input;
    proto::Input::Filling filling;
    proto::DType dtype;
  };

  template <typename Out>
  void FillOne(proto::Input::Filling filling, const SequenceLayout& layout, int64_t index, Out* out) const;

  TokenRow row_;
  std::vector<Field> fields_;
};

}  // namespace ft
