// Whether tokens of a .ftd file are those of a model.
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "runtime/data/ftd_file.h"

namespace ft {

// A model of `vocab_size` rows that was imported with a tokenizer of this hash (empty: not known). Errors:
// InvalidArgument, one line that names the file: another tokenizer, a vocabulary of more than the rows that
// is not known to be the model's own, or a token without a row.
absl::Status CheckTokenizer(const FtdFile& file, int64_t vocab_size, const std::string& tokenizer_hash);

}  // namespace ft
