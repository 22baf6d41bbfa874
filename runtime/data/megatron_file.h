// Megatron-LM's indexed data sets: X.bin, integers and nothing else, and X.idx, which describes them
// (megatron/core/datasets/indexed_dataset.py).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "runtime/base/mapped_file.h"
#include "runtime/data/token_row.h"

namespace ft {

// Both files, mapped. Movable. Thread-safe once open.
class MegatronFile {
 public:
  // `path` is that of either file. Reads both through once. Errors: those of MappedFile::Open;
  // InvalidArgument or DataLoss (65), one line that names the file and the place: an index of another kind or
  // version, of integers that are no uint8, uint16 or int32, or with another number of bytes than it says;
  // lengths, places and documents that contradict each other or the .bin; a token outside [0, vocab_size).
  static absl::StatusOr<MegatronFile> Open(const std::string& path, int64_t vocab_size);

  const std::string& path() const { return tokens_.path(); }  // of the .bin
  uint64_t bytes() const { return tokens_.bytes().size() + index_.bytes().size(); }
  uint64_t content_hash() const { return content_hash_; }  // of the .idx and the .bin
  TokenRow row() const {
    return {.data = tokens_.bytes().data(),
            .token_bytes = token_bytes_,
            .count = static_cast<int64_t>(documents_.back()),
            .documents = documents_};
  }

 private:
  MegatronFile(MappedFile index, MappedFile tokens) : index_(std::move(index)), tokens_(std::move(tokens)) {}
  absl::Status ReadIndex();
  absl::Status ReadTokens(int64_t vocab_size);

  MappedFile index_, tokens_;
  int token_bytes_ = 0;
  std::vector<uint64_t> documents_;  // where they begin, in tokens, and the end; empty ones left out
  uint64_t content_hash_ = 0;
};

// Whether it is one of the two files: an index by its first bytes, a .bin by the index beside it.
bool IsMegatronFile(const std::string& path);

// Whether `path` is an index whose .bin is there, too: that one stands for both.
bool IsMegatronIndex(const std::string& path);

}  // namespace ft
