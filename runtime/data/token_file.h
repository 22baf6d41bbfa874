// A file of tokens as a row of training sequences.
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "runtime/base/mapped_file.h"
#include "runtime/data/data_format.h"

namespace ft {

// A file of tokens, mapped; no descriptor is kept. Sequence k is tokens [kT, kT + T]: its first T are inputs,
// its last T targets, so neighbours share one token and there are (num_tokens - 1) / T of them. Movable.
// Thread-safe once open.
class TokenFile {
 public:
  int64_t num_tokens() const { return area_.count; }
  int64_t seq_len() const { return seq_len_; }                            // T
  int64_t num_sequences() const { return (area_.count - 1) / seq_len_; }  // >= 1
  DataFormat format() const { return format_; }                           // never kAuto
  int token_bytes() const { return area_.token_bytes; }                   // 1, 2 or 4
  const std::string& path() const { return file_.path(); }
  uint64_t bytes() const { return file_.bytes().size(); }  // of the file
  uint64_t content_hash() const { return content_hash_; }  // ContentHash of all its bytes
  // What speaks against the format that was asked for; empty: nothing.
  const std::string& doubt() const { return doubt_; }

  // Sequence `index` in [0, num_sequences()): writes T inputs and T targets, unless null. Allocates nothing.
  void ReadSequence(int64_t index, int32_t* inputs, int32_t* targets) const;

 private:
  friend absl::StatusOr<TokenFile> OpenTokenFile(const std::string&, int64_t, int64_t, DataFormat);
  // Where the tokens lie in the file: little-endian unsigned integers, up to its end.
  struct TokenArea {
    const uint8_t* data;
    int64_t count;
    int token_bytes;
    bool described;  // by a header
  };
  TokenFile(MappedFile file, DataFormat format, TokenArea area, int64_t seq_len, uint64_t content_hash,
            std::string doubt);
  static absl::StatusOr<TokenArea> FindTokens(const MappedFile& file, DataFormat format);
  static absl::StatusOr<TokenArea> LlmcTokens(const MappedFile& file);
  // In one pass, whether all tokens are inside the vocabulary, and the hash of the file.
  static absl::StatusOr<uint64_t> ReadThrough(const MappedFile& file, const TokenArea& area,
                                              int64_t vocab_size);

  MappedFile file_;
  DataFormat format_;
  TokenArea area_;
  int64_t seq_len_;
  uint64_t content_hash_;
  std::string doubt_;
};

// Maps `path` and reads it through once, so that no token outside [0, vocab_size) reaches a step.
// vocab_size and seq_len must be positive.
// Errors: NotFound, PermissionDenied, Internal from the system (exit status 74). InvalidArgument (65): what
// RecogniseFormat() refuses; empty; too short for one sequence (fewer than seq_len + 1 tokens); a token
// outside the vocabulary (names its position and value); a size that is no multiple of the tokens'; an
// unknown version of llm.c's header. DataLoss (65): llm.c's header promises another number of tokens than the
// file holds.
absl::StatusOr<TokenFile> OpenTokenFile(const std::string& path, int64_t vocab_size, int64_t seq_len,
                                        DataFormat format = DataFormat::kAuto);

}  // namespace ft
