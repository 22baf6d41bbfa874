#include "runtime/data/token_dataset.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <numeric>
#include <unordered_set>
#include <utility>

#include "absl/memory/memory.h"
#include "runtime/base/status_macros.h"
#include "runtime/data/source_mix.h"

namespace ft {
namespace {

// A whole folder was asked for, so what it holds is not passed over; say how to ask for less.
absl::Status OfFolder(const absl::Status& status) {
  if (!absl::IsInvalidArgument(status)) return status;
  return absl::InvalidArgumentError(
      fmt::format("{} (a folder is read whole; name files in it by a glob, such as 'folder/*.bin')",
                  std::string(status.message())));
}

absl::Status CheckDistinct(const std::vector<TokenFile>& files) {
  std::unordered_set<std::string> names;
  for (const TokenFile& file : files) {
    if (names.insert(std::filesystem::path(file.path()).lexically_normal().native()).second) continue;
    return absl::InvalidArgumentError(fmt::format(
        "'{}' is named twice; name it once (a weight says how often a source is drawn)", file.path()));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<int64_t>> SharesOfEntries(const std::vector<DataEntry>& entries) {
  if (!entries[0].weight.has_value()) return std::vector<int64_t>{kShareUnit};
  std::vector<double> weights;
  for (const DataEntry& entry : entries) weights.push_back(entry.weight.value_or(0));
  return SharesOf(weights);
}

}  // namespace

int64_t TokenDataset::num_tokens() const {
  return std::accumulate(sources_.begin(), sources_.end(), int64_t{0},
                         [](int64_t sum, const DataSource& source) { return sum + source.num_tokens; });
}

std::string TokenDataset::doubt() const {
  std::string first;
  int64_t more = 0;
  for (const TokenFile& file : files_) {
    if (file.doubt().empty()) continue;
    if (first.empty()) {
      first = file.doubt();
    } else {
      ++more;
    }
  }
  if (more == 0) return first;
  return fmt::format("{} (and {} more file{} that look{} like something else)", first, more,
                     more == 1 ? "" : "s", more == 1 ? "s" : "");
}

void TokenDataset::ReadSequence(int64_t index, int32_t* inputs, int32_t* targets) const {
  const auto after = std::upper_bound(first_sequence_.begin(), first_sequence_.end(), index);
  const auto file = static_cast<size_t>(after - first_sequence_.begin()) - 1;
  files_[file].ReadSequence(index - first_sequence_[file], inputs, targets);
}

absl::Status TokenDataset::AddFiles(const std::string& path, int64_t vocab_size, DataFormat format) {
  FT_ASSIGN_OR_RETURN(const std::vector<DataPath> found, FindDataFiles(path));
  for (const DataPath& file : found) {
    absl::StatusOr<TokenFile> opened = OpenTokenFile(file.path, vocab_size, seq_len_, format);
    if (!opened.ok()) return file.of_folder ? OfFolder(opened.status()) : opened.status();
    first_sequence_.push_back(first_sequence_.back() + opened->num_sequences());
    files_.push_back(*std::move(opened));
  }
  return absl::OkStatus();
}

void TokenDataset::AddSource(std::optional<double> weight, int64_t share) {
  DataSource source{.weight = weight, .share = share};
  if (!sources_.empty()) source.first_file = sources_.back().first_file + sources_.back().num_files;
  source.num_files = files_.size() - source.first_file;
  source.first_sequence = first_sequence_[source.first_file];
  source.num_sequences = first_sequence_.back() - source.first_sequence;
  for (size_t i = source.first_file; i < files_.size(); ++i) source.num_tokens += files_[i].num_tokens();
  sources_.push_back(source);
}

absl::StatusOr<std::unique_ptr<TokenDataset>> OpenDataset(const std::vector<DataEntry>& entries,
                                                          int64_t vocab_size, int64_t seq_len,
                                                          DataFormat format) {
  FT_ASSIGN_OR_RETURN(const std::vector<int64_t> shares, SharesOfEntries(entries));
  auto dataset = absl::WrapUnique(new TokenDataset(seq_len));
  for (size_t i = 0; i < entries.size(); ++i) {
    FT_RETURN_IF_ERROR(dataset->AddFiles(entries[i].path, vocab_size, format));
    if (entries[i].weight.has_value()) dataset->AddSource(entries[i].weight, shares[i]);
  }
  if (dataset->sources_.empty()) dataset->AddSource({}, shares[0]);
  FT_RETURN_IF_ERROR(CheckDistinct(dataset->files_));
  return dataset;
}

absl::StatusOr<std::unique_ptr<TokenDataset>> OpenDataset(const std::string& path, int64_t vocab_size,
                                                          int64_t seq_len, DataFormat format) {
  return OpenDataset(std::vector<DataEntry>{{.path = path}}, vocab_size, seq_len, format);
}

}  // namespace ft
