// What a run trains or is evaluated on: sources of files of examples, sequences of tokens or others.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "runtime/data/data_file.h"
#include "runtime/data/data_format.h"
#include "runtime/data/data_inputs.h"
#include "runtime/data/data_list.h"

namespace ft {

// Files whose sequences follow each other, the second file's after the first one's: no sequence crosses from
// one into the next. It has epochs of its own: how often its sequences come is for its share to say.
struct DataSource {
  std::optional<double> weight = {};  // as given
  int64_t share = 0;                  // of kShareUnit
  size_t first_file = 0, num_files = 0;
  int64_t first_sequence = 0, num_sequences = 0;  // in the data set
  int64_t num_tokens = 0;                         // of its files of tokens
};

// Sequences [0, num_sequences()) are those of the first source, then those of the second ... Thread-safe.
class Dataset {
 public:
  const std::vector<proto::Input>& inputs() const { return inputs_.inputs; }
  int64_t seq_len() const { return inputs_.seq_len; }  // T; 1 where examples are no sequences
  int64_t num_sequences() const { return first_sequence_.back(); }
  int64_t num_tokens() const;
  const std::vector<DataSource>& sources() const { return sources_; }  // at least one
  using Files = absl::Span<const std::unique_ptr<DataFile>>;
  Files files() const { return files_; }  // source after source
  Files files(const DataSource& source) const {
    return absl::MakeConstSpan(files_).subspan(source.first_file, source.num_files);
  }
  // What speaks against the format that was asked for, one line for all files; empty: nothing.
  std::string doubt() const;

  // Writes example `index`: that of input i to rows[i]. Constants are left alone. Allocates nothing.
  void Read(int64_t index, absl::Span<void* const> rows) const;
  // Writes the inputs that are constants, the same in all files.
  void ReadConstants(absl::Span<void* const> inputs) const;

 private:
  friend absl::StatusOr<std::unique_ptr<Dataset>> OpenDataset(const std::vector<DataEntry>&, DataInputs,
                                                              DataFormat);
  explicit Dataset(DataInputs inputs) : inputs_(std::move(inputs)) {}
  absl::Status AddFiles(const std::string& path, DataFormat format);
  void Add(std::unique_ptr<DataFile> file);
  absl::Status CheckConstants() const;
  void AddSource(std::optional<double> weight, int64_t share);  // of the files that belong to none yet

  const DataInputs inputs_;  // which files look at
  std::vector<std::unique_ptr<DataFile>> files_;
  std::vector<int64_t> first_sequence_ = {0};  // of each file; the last: how many there are
  std::vector<DataSource> sources_;
};

// Opens all files of `entries` (at least one), each in a format of its own with kAuto. Entries with weights
// are a source each; without them all entries are one source. Errors: those of FindDataFiles() and
// OpenTokenExamples() or OpenTensorFile(), which name the file; InvalidArgument for a file that is named
// twice, for constants that are others in another file, and for weights that SharesOf() refuses.
absl::StatusOr<std::unique_ptr<Dataset>> OpenDataset(const std::vector<DataEntry>& entries, DataInputs inputs,
                                                     DataFormat format = DataFormat::kAuto);

// Of sequences of tokens.
absl::StatusOr<std::unique_ptr<Dataset>> OpenDataset(const std::vector<DataEntry>& entries,
                                                     int64_t vocab_size, int64_t seq_len,
                                                     DataFormat format = DataFormat::kAuto);
absl::StatusOr<std::unique_ptr<Dataset>> OpenDataset(const std::string& path, int64_t vocab_size,
                                                     int64_t seq_len, DataFormat format = DataFormat::kAuto);

}  // namespace ft
