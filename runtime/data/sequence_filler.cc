#include "runtime/data/sequence_filler.h"

#include <algorithm>
#include <numeric>

#include "runtime/plan/inputs.h"

namespace ft {
namespace {

template <typename Out>
void CopyTokens(const TokenRow& row, int64_t first, int64_t count, Out* out) {
  WithTokenType(row.token_bytes, [&](auto type) {
    const auto* tokens = reinterpret_cast<const decltype(type)*>(row.data) + first;
    for (int64_t i = 0; i < count; ++i) out[i] = static_cast<Out>(tokens[i]);
  });
}

// The same, but for those that do not count.
template <typename Out>
void CopyCounted(const TokenRow& row, int64_t first, int64_t count, Out* out) {
  CopyTokens(row, first, count, out);
  if (row.mask.empty()) return;
  for (int64_t i = 0; i < count; ++i)
    if (!row.Counts(first + i)) out[i] = static_cast<Out>(kLeftOut);
}

// What padding has; `pieces` stand before it.
int64_t PaddingOf(proto::Input::Filling filling, const TokenRow& row, int64_t pieces) {
  switch (filling) {
    case proto::Input::TOKENS:
      return row.padding;
    case proto::Input::TARGETS:
    case proto::Input::LABELS:
      return kLeftOut;
    case proto::Input::SEGMENTS:
      return pieces;
    default:
      return 0;
  }
}

// A piece of `count` places from token `first` on, the `number`th of its sequence.
template <typename Out>
void FillPiece(proto::Input::Filling filling, const TokenRow& row, int64_t first, int64_t count,
               int64_t number, bool packed, Out* out) {
  switch (filling) {
    case proto::Input::TOKENS:
      return CopyTokens(row, first, count, out);
    case proto::Input::TARGETS:
      return CopyCounted(row, first + 1, count, out);
    case proto::Input::LABELS:
      CopyCounted(row, first, count, out);
      if (packed) out[0] = static_cast<Out>(kLeftOut);
      return;
    case proto::Input::POSITIONS:
      return std::iota(out, out + count, Out{0});
    case proto::Input::SEGMENTS:
      std::fill_n(out, count, static_cast<Out>(number));
      return;
    case proto::Input::TOKEN_TYPES:
      std::fill_n(out, count, Out{0});
      return;
    default:
      std::fill_n(out, count, Out{1});  // a mask
  }
}

}  // namespace

SequenceFiller::SequenceFiller(const DataInputs& inputs, const TokenRow& row) : row_(row) {
  for (size_t i = 0; i < inputs.inputs.size(); ++i) {
    const proto::Input& input = inputs.inputs[i];
    if (IsOfTokens(input.filling())) fields_.push_back({i, input.filling(), input.dtype()});
  }
}

template <typename Out>
void SequenceFiller::FillOne(proto::Input::Filling filling, const SequenceLayout& layout, int64_t index,
                             Out* out) const {
  int64_t at = 0, pieces = 0;
  const bool is_length = filling == proto::Input::LENGTHS;
  layout.ForPieces(index, [&](int64_t first, int64_t count) {
    if (!is_length)
      FillPiece(filling, row_, first, count, pieces, layout.way() == SequenceWay::kPacked, out + at);
    at += count;
    ++pieces;
  });
  if (is_length) {
    *out = static_cast<Out>(at);
  } else if (filling == proto::Input::POSITIONS) {
    std::iota(out + at, out + layout.seq_len(), Out{0});  // inside of any table
  } else {
    std::fill(out + at, out + layout.seq_len(), static_cast<Out>(PaddingOf(filling, row_, pieces)));
  }
}

void SequenceFiller::Fill(const SequenceLayout& layout, int64_t index, absl::Span<void* const> rows) const {
  for (const Field& field : fields_) {
    void* const out = rows[field.input];
    if (field.dtype == proto::I64) {
      FillOne(field.filling, layout, index, static_cast<int64_t*>(out));
    } else if (field.dtype == proto::U8) {
      FillOne(field.filling, layout, index, static_cast<uint8_t*>(out));
    } else {
      FillOne(field.filling, layout, index, static_cast<int32_t*>(out));
    }
  }
}

}  // namespace ft
