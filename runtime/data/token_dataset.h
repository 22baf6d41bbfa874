// Token files as a row of training sequences.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "runtime/base/mapped_file.h"

namespace ft {

// How a file spells its tokens; --data-format=auto|text|llmc|u16.
//   kText  every byte is a token
//   kLlmc  llm.c's .bin: a header of 256 little-endian int32 (magic 20240520, version 1, number of tokens,
//   zeros),
//          then one little-endian uint16 a token
//   kU16   little-endian uint16 tokens and nothing else
//   kAuto  a file that starts with llm.c's magic is kLlmc whatever its name; else a name in .u16 or .bin
//   means kU16; any
//          other file is kText. (As uint16 tokens the magic would read 55672, 308, which no real file begins
//          with; should one, --data-format=u16 says so.)
enum class DataFormat { kAuto, kText, kLlmc, kU16 };

// InvalidArgument for any other word, listing the four.
absl::StatusOr<DataFormat> ParseDataFormat(std::string_view word);
std::string_view Name(DataFormat format);

// A file of tokens, mapped. Sequence k is tokens [kT, kT + T]: its first T are inputs, its last T targets, so
// neighbours share one token and there are (num_tokens - 1) / T of them. Thread-safe once open.
class TokenDataset {
 public:
  int64_t num_tokens() const { return num_tokens_; }
  int64_t seq_len() const { return seq_len_; }              // T
  int64_t num_sequences() const { return num_sequences_; }  // >= 1
  DataFormat format() const { return format_; }             // never kAuto
  const std::string& path() const { return file_.path(); }

  // Sequence `index` in [0, num_sequences()): writes T inputs and T targets. Allocates nothing.
  void ReadSequence(int64_t index, int32_t* inputs, int32_t* targets) const;

 private:
  friend absl::StatusOr<std::unique_ptr<TokenDataset>> OpenDataset(const std::string&, int64_t, int64_t,
                                                                   DataFormat);
  TokenDataset(MappedFile file, DataFormat format, const uint8_t* tokens, int64_t num_tokens,
               int64_t seq_len);

  MappedFile file_;
  DataFormat format_;
  const uint8_t* tokens_;  // uint8 or uint16 little-endian, by format_
  int64_t num_tokens_;
  int64_t seq_len_;
  int64_t num_sequences_;
};

// Maps `path` and reads it through once, so that no token outside [0, vocab_size) reaches a step.
// vocab_size and seq_len must be positive.
// Errors: NotFound, PermissionDenied, Internal from the system (exit status 74). InvalidArgument (65): empty;
// too short for one sequence (fewer than seq_len + 1 tokens); a token outside the vocabulary (names its
// position and value); an odd size for uint16; an unknown version of llm.c's header. DataLoss (65): llm.c's
// header promises another number of tokens than the file holds.
absl::StatusOr<std::unique_ptr<TokenDataset>> OpenDataset(const std::string& path, int64_t vocab_size,
                                                          int64_t seq_len,
                                                          DataFormat format = DataFormat::kAuto);

}  // namespace ft
