// Which data a run has read, so that one that goes on can tell whether it has the same.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "runtime/data/data_format.h"
#include "runtime/data/dataset.h"

namespace ft {

struct FileIdentity {
  std::string path;  // as given: for messages, where files lie does not matter
  uint64_t bytes = 0;
  int64_t num_tokens = 0;                 // 0 of a file of other examples
  DataFormat format = DataFormat::kText;  // never kAuto
  int token_bytes = 1;                    // 0 of a file of other examples
  int64_t num_examples = 0;               // of such a file
  std::string way = "";                   // "packed", or "documents" that are an example each; empty: neither
  uint64_t content_hash = 0;              // ContentHash of the file
};

struct SourceIdentity {
  std::optional<double> weight;
  std::vector<FileIdentity> files;
};

struct DataIdentity {
  int64_t seq_len = 0;
  std::vector<SourceIdentity> sources;
};

DataIdentity IdentityOf(const Dataset& dataset);

// A hash of all that decides which tokens stand in sequence k of which source, and how often a source is
// drawn: equal for equal files in other folders.
uint64_t IdentityHash(const DataIdentity& identity);

// One line about the first thing that makes `now` other data than `saved`; empty where they are the same:
// equal files, by their contents, in the same order, read in the same format, by the same weights (0.7 and
// 0.3 are 7 and 3), cut into sequences of the same length.
std::string DataChange(const DataIdentity& saved, const DataIdentity& now);

// JSON: {"seq_len": 64, "sources": [{"weight": 0.7, "files": [{"path": "a.bin", "bytes": 20, "tokens": 10,
// "format": "u16", "token_bytes": 2, "hash": "0123456789abcdef"}]}]}; "weight" is absent where there is none.
// "way" is there where it is not empty. Files of tensors have "examples" instead of "tokens" and
// "token_bytes". Bytes of a path that are not UTF-8 are replaced.
std::string DataIdentityText(const DataIdentity& identity);
// Errors: InvalidArgument, one line, for what is not of that form, or cannot be: a data set that is read has
// at least a source, each of which has at least a file of at least a sequence.
absl::StatusOr<DataIdentity> ParseDataIdentity(std::string_view text);

}  // namespace ft
