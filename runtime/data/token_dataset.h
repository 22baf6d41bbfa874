// What a run trains or is evaluated on: sources of token files.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "runtime/data/data_format.h"
#include "runtime/data/data_list.h"
#include "runtime/data/token_file.h"

namespace ft {

// Files whose sequences follow each other, the second file's after the first one's: no sequence crosses from
// one into the next. It has epochs of its own: how often its sequences come is for its share to say.
struct DataSource {
  std::optional<double> weight = {};  // as given
  int64_t share = 0;                  // of kShareUnit
  size_t first_file = 0, num_files = 0;
  int64_t first_sequence = 0, num_sequences = 0;  // in the data set
  int64_t num_tokens = 0;
};

// Sequences [0, num_sequences()) are those of the first source, then those of the second ... Thread-safe.
class TokenDataset {
 public:
  int64_t seq_len() const { return seq_len_; }  // T
  int64_t num_sequences() const { return first_sequence_.back(); }
  int64_t num_tokens() const;
  const std::vector<DataSource>& sources() const { return sources_; }  // at least one
  const std::vector<TokenFile>& files() const { return files_; }       // source after source
  absl::Span<const TokenFile> files(const DataSource& source) const {
    return absl::MakeConstSpan(files_).subspan(source.first_file, source.num_files);
  }
  // What speaks against the format that was asked for, one line for all files; empty: nothing.
  std::string doubt() const;

  // Writes T inputs and T targets. Allocates nothing.
  void ReadSequence(int64_t index, int32_t* inputs, int32_t* targets) const;

 private:
  friend absl::StatusOr<std::unique_ptr<TokenDataset>> OpenDataset(const std::vector<DataEntry>&, int64_t,
                                                                   int64_t, DataFormat);
  explicit TokenDataset(int64_t seq_len) : seq_len_(seq_len) {}
  absl::Status AddFiles(const std::string& path, int64_t vocab_size, DataFormat format);
  void AddSource(std::optional<double> weight, int64_t share);  // of the files that belong to none yet

  int64_t seq_len_;
  std::vector<TokenFile> files_;
  std::vector<int64_t> first_sequence_ = {0};  // of each file; the last: how many there are
  std::vector<DataSource> sources_;
};

// Opens all files of `entries` (at least one), each in a format of its own with kAuto. Entries with weights
// are a source each; without them all entries are one source. Errors: those of FindDataFiles() and
// OpenTokenFile(), which name the file; InvalidArgument for a file that is named twice, and for weights that
// SharesOf() refuses.
absl::StatusOr<std::unique_ptr<TokenDataset>> OpenDataset(const std::vector<DataEntry>& entries,
                                                          int64_t vocab_size, int64_t seq_len,
                                                          DataFormat format = DataFormat::kAuto);

// Of one entry.
absl::StatusOr<std::unique_ptr<TokenDataset>> OpenDataset(const std::string& path, int64_t vocab_size,
                                                          int64_t seq_len,
                                                          DataFormat format = DataFormat::kAuto);

}  // namespace ft
