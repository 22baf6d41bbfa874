// What a tokenizer.json of transformers says of its tokens.
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"

namespace ft {

struct TokenizerFacts {
  std::string hash;             // of all tokens, 16 hexadecimal digits
  int64_t vocabulary_size = 0;  // the greatest id + 1
};

// The hash is XXH64 (seed 0) over every id, ascending: the id and the bytes of its string, both little-endian
// uint32, and the string in UTF-8 as the file spells it. Tokens are those of model.vocab and added_tokens; of
// an id with two strings it is the added token's. Errors: those of MappedFile::Open; InvalidArgument, one
// line, for what is no such file.
absl::StatusOr<TokenizerFacts> ReadTokenizer(const std::string& path);

}  // namespace ft
