#include "runtime/data/tokenizer_check.h"

#include <fmt/format.h>

#include "runtime/data/token_scan.h"

namespace ft {
namespace {

// A model need not have rows for all that its own tokenizer knows, such as marks of pictures.
absl::Status CheckTokensBelow(const FtdFile& file, int64_t rows) {
  const int64_t outside = WithTokenType(file.token_bytes(), [&](auto type) {
    return FindOutside(reinterpret_cast<const decltype(type)*>(file.token_data()), file.num_tokens(), rows);
  });
  if (outside < file.num_tokens())
    return absl::InvalidArgumentError(
        fmt::format("'{}': token {} is {}, which the model has no row for: it has {}", file.path(), outside,
                    file.Token(outside), rows));
  const int64_t padding = file.pad_token().value_or(0);
  if (padding < rows) return absl::OkStatus();
  return absl::InvalidArgumentError(fmt::format(
      "'{}' is padded with token {}, which the model has no row for: it has {}", file.path(), padding, rows));
}

}  // namespace

absl::Status CheckTokenizer(const FtdFile& file, int64_t vocab_size, const std::string& tokenizer_hash) {
  const bool both_known = !file.tokenizer_hash().empty() && !tokenizer_hash.empty();
  if (both_known && file.tokenizer_hash() != tokenizer_hash)
    return absl::InvalidArgumentError(fmt::format(
        "'{}' was made by another tokenizer ({}) than the one of the model ({}); tokenize with the "
        "tokenizer of the folder that the model was imported from",
        file.path(), file.tokenizer_hash(), tokenizer_hash));
  if (file.vocabulary_size() <= vocab_size) return absl::OkStatus();
  if (both_known) return CheckTokensBelow(file, vocab_size);
  return absl::InvalidArgumentError(fmt::format(
      "'{}' has a vocabulary of {}, more than the model's {}; tokenize for this model, or give the "
      "model more rows",
      file.path(), file.vocabulary_size(), vocab_size));
}

}  // namespace ft
