// A .ftd file: documents of tokens, with what a model needs to know of them (docs/data.md).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "runtime/base/mapped_file.h"
#include "runtime/checkpoint/safetensors_header.h"

namespace ft {

// What may be made of the documents.
enum class FtdKind {
  kText,           // they may follow each other in one sequence
  kConversations,  // the same; parts of them are no targets
  kSequences       // each is one example (classification)
};

// The tokens as text, without a tokenizer.
class FtdVocabulary {
 public:
  FtdVocabulary(absl::Span<const uint32_t> offsets, const char* bytes, absl::Span<const uint8_t> special)
      : offsets_(offsets), bytes_(bytes), special_(special) {}

  int64_t size() const { return static_cast<int64_t>(special_.size()); }
  // `id` in [0, size()). Bytes of one token need not be whole characters.
  std::string_view Bytes(int64_t id) const {
    return {bytes_ + offsets_[id], offsets_[id + 1] - offsets_[id]};
  }
  // No text: end of text, padding ...
  bool IsSpecial(int64_t id) const { return special_[id] != 0; }

 private:
  absl::Span<const uint32_t> offsets_;  // size() + 1, into bytes_
  const char* bytes_;
  absl::Span<const uint8_t> special_;
};

// Mapped; no descriptor is kept. All that the format promises is checked when it is opened. Movable.
// Thread-safe once open.
class FtdFile {
 public:
  // Another input of the model, a row for each document.
  struct Input {
    std::string name;
    SafetensorsDType dtype;
    std::vector<int64_t> shape;  // [num_documents(), ...]
    absl::Span<const uint8_t> bytes;
  };

  // Reads the file through once. Errors: those of MappedFile::Open; DataLoss (65) for what is cut off, holds
  // another number of something than it says, or has another hash; InvalidArgument (65) for all else that is
  // not as the format has it. One line that names the file, the part of it and the place.
  static absl::StatusOr<FtdFile> Open(const std::string& path);

  const std::string& path() const { return file_.path(); }
  uint64_t bytes() const { return file_.bytes().size(); }  // of the file
  uint64_t content_hash() const { return content_hash_; }  // ContentHash of all its bytes

  FtdKind kind() const { return kind_; }
  int64_t vocabulary_size() const { return vocabulary_size_; }           // every token is below it
  const std::string& tokenizer_hash() const { return tokenizer_hash_; }  // 16 hex digits; empty: not known
  std::optional<int64_t> bos_token() const { return bos_; }
  std::optional<int64_t> eos_token() const { return eos_; }
  std::optional<int64_t> pad_token() const { return pad_; }

  // Document k is tokens [documents()[k], documents()[k + 1]), at least one.
  absl::Span<const uint64_t> documents() const { return documents_; }
  int64_t num_documents() const { return static_cast<int64_t>(documents_.size()) - 1; }

  int64_t num_tokens() const { return num_tokens_; }
  int token_bytes() const { return token_bytes_; }           // 2 or 4
  const uint8_t* token_data() const { return token_data_; }  // aligned to token_bytes()
  int64_t Token(int64_t i) const {
    return token_bytes_ == 2 ? int64_t{reinterpret_cast<const uint16_t*>(token_data_)[i]}
                             : int64_t{reinterpret_cast<const uint32_t*>(token_data_)[i]};
  }

  // Whether token i is a target, which the model learns to predict.
  bool Counts(int64_t i) const { return mask_.empty() || (mask_[i >> 3] >> (i & 7) & 1) != 0; }
  absl::Span<const uint8_t> mask() const { return mask_; }  // empty: all count
  int64_t num_counted() const { return counted_; }

  const std::vector<Input>& inputs() const { return inputs_; }
  const std::optional<FtdVocabulary>& vocabulary() const { return vocabulary_; }

 private:
  friend class FtdOpener;
  explicit FtdFile(MappedFile file) : file_(std::move(file)) {}

  MappedFile file_;
  uint64_t content_hash_ = 0;
  FtdKind kind_ = FtdKind::kText;
  int64_t vocabulary_size_ = 0;
  std::string tokenizer_hash_;
  std::optional<int64_t> bos_, eos_, pad_;
  absl::Span<const uint64_t> documents_;
  int64_t num_tokens_ = 0;
  int token_bytes_ = 0;
  const uint8_t* token_data_ = nullptr;
  absl::Span<const uint8_t> mask_;
  int64_t counted_ = 0;
  std::vector<Input> inputs_;
  std::optional<FtdVocabulary> vocabulary_;
};

// Whether the file is a .ftd file, by its name or by what its header says. Errors: those of the system.
absl::StatusOr<bool> IsFtdFile(const std::string& path);

}  // namespace ft
