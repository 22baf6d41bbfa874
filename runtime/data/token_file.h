// A file of tokens and nothing else.
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "runtime/base/mapped_file.h"
#include "runtime/data/data_format.h"
#include "runtime/data/token_row.h"

namespace ft {

// A file of tokens, mapped; no descriptor is kept. Movable. Thread-safe once open.
class TokenFile {
 public:
  int64_t num_tokens() const { return area_.count; }
  DataFormat format() const { return format_; }          // never kAuto
  int token_bytes() const { return area_.token_bytes; }  // 1, 2 or 4
  TokenRow row() const {
    return {.data = area_.data, .token_bytes = area_.token_bytes, .count = area_.count};
  }
  const std::string& path() const { return file_.path(); }
  uint64_t bytes() const { return file_.bytes().size(); }  // of the file
  uint64_t content_hash() const { return content_hash_; }  // ContentHash of all its bytes
  // What speaks against the format that was asked for; empty: nothing.
  const std::string& doubt() const { return doubt_; }

 private:
  friend absl::StatusOr<TokenFile> OpenTokenFile(const std::string&, int64_t, DataFormat);
  // Where the tokens lie in the file: little-endian unsigned integers, up to its end.
  struct TokenArea {
    const uint8_t* data;
    int64_t count;
    int token_bytes;
    bool described;  // by a header
  };
  TokenFile(MappedFile file, DataFormat format, TokenArea area, uint64_t content_hash, std::string doubt);
  static absl::StatusOr<TokenArea> FindTokens(const MappedFile& file, DataFormat format);
  static absl::StatusOr<TokenArea> LlmcTokens(const MappedFile& file);
  // In one pass, whether all tokens are inside the vocabulary, and the hash of the file.
  static absl::StatusOr<uint64_t> ReadThrough(const MappedFile& file, const TokenArea& area,
                                              int64_t vocab_size);

  MappedFile file_;
  DataFormat format_;
  TokenArea area_;
  uint64_t content_hash_;
  std::string doubt_;
};

// Maps `path` and reads it through once, so that no token outside [0, vocab_size) reaches a step.
// vocab_size must be positive.
// Errors: NotFound, PermissionDenied, Internal from the system (exit status 74). InvalidArgument (65): what
// RecogniseFormat() refuses; empty; a token outside the vocabulary (names its position and value); a size
// that is no multiple of the tokens'; an unknown version of llm.c's header. DataLoss (65): llm.c's header
// promises another number of tokens than the file holds.
absl::StatusOr<TokenFile> OpenTokenFile(const std::string& path, int64_t vocab_size,
                                        DataFormat format = DataFormat::kAuto);

}  // namespace ft
