// Which tokens of a file lie in which sequence.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "runtime/data/packing.h"
#include "runtime/data/token_row.h"

namespace ft {

// How sequences are made of tokens.
enum class SequenceWay {
  kStream,    // sequence k begins at token kT, wherever documents begin
  kPacked,    // whole documents lie together in sequences, those that are too long in pieces
  kDocuments  // a document each, padding behind
};
std::string_view Name(SequenceWay way);  // "stream"

// T places of each sequence are filled by pieces, one after the other, and padding behind them. A piece is a
// document, or a part of one, or a part of the stream. With `beyond` = 1 the target of a place is the token
// after it: a piece of n places needs n + 1 tokens, of which the last one is in none. Reading allocates
// nothing; thread-safe.
class SequenceLayout {
 public:
  // `row` must outlive it. InvalidArgument, one line that names `path`: too few tokens for a sequence; a
  // document that is too long, or has no place, where each is an example; 2^32 documents or more.
  static absl::StatusOr<SequenceLayout> Make(const TokenRow& row, SequenceWay way, int64_t seq_len,
                                             int64_t beyond, const std::string& path);

  SequenceWay way() const { return way_; }
  int64_t num_sequences() const { return num_sequences_; }
  int64_t seq_len() const { return seq_len_; }        // T
  int64_t num_filled() const { return num_filled_; }  // places that are no padding, of all sequences

  // Calls `with` with the first token and the number of places, 1 or more, of each piece of a sequence.
  template <typename With>
  void ForPieces(int64_t index, With with) const {
    if (way_ == SequenceWay::kStream) return with(index * seq_len_, seq_len_);
    if (way_ == SequenceWay::kDocuments) return with(Begin(index), PlacesOf(index));
    const auto whole = static_cast<int64_t>(whole_.size());
    if (index < whole) return with(static_cast<int64_t>(whole_[index]), seq_len_);
    for (uint32_t i = packs_.begins[index - whole]; i < packs_.begins[index - whole + 1]; ++i) {
      const int64_t document = packs_.documents[i], places = PlacesOf(document);
      with(Begin(document) + places / seq_len_ * seq_len_, places % seq_len_);
    }
  }

 private:
  SequenceLayout(const TokenRow& row, SequenceWay way, int64_t seq_len, int64_t beyond)
      : documents_(row.documents), way_(way), seq_len_(seq_len), beyond_(beyond) {}
  absl::Status TakeStream(const TokenRow& row, const std::string& path);
  absl::Status TakeDocuments(const std::string& path);
  absl::Status Pack(const std::string& path);

  int64_t num_documents() const { return static_cast<int64_t>(documents_.size()) - 1; }
  int64_t Begin(int64_t document) const { return static_cast<int64_t>(documents_[document]); }
  int64_t PlacesOf(int64_t document) const { return Begin(document + 1) - Begin(document) - beyond_; }

  absl::Span<const uint64_t> documents_;
  SequenceWay way_;
  int64_t seq_len_;
  int64_t beyond_;
  int64_t num_sequences_ = 0;
  int64_t num_filled_ = 0;
  // Of packed ones: first the pieces of T places of long documents, by their first tokens; then packs of what
  // is left of long documents, and of short ones.
  std::vector<uint64_t> whole_;
  Packs packs_;
};

}  // namespace ft
