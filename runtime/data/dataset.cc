#include "runtime/data/dataset.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <numeric>
#include <string_view>
#include <utility>

#include "absl/memory/memory.h"
#include "runtime/base/status_macros.h"
#include "runtime/data/ftd_file.h"
#include "runtime/data/megatron_file.h"
#include "runtime/data/npy_folder.h"
#include "runtime/data/source_mix.h"
#include "runtime/data/tensor_file.h"
#include "runtime/data/token_examples.h"

namespace ft {
namespace {

// A whole folder was asked for, so what it holds is not passed over; say how to ask for less.
absl::Status OfFolder(const absl::Status& status) {
  if (!absl::IsInvalidArgument(status)) return status;
  return absl::InvalidArgumentError(
      fmt::format("{} (a folder is read whole; name files in it by a glob, such as 'folder/*.bin')",
                  std::string(status.message())));
}

// A file may have several names: links of either kind.
absl::Status CheckDistinct(Dataset::Files files) {
  std::map<std::pair<dev_t, ino_t>, std::string_view> names;
  for (const auto& file : files) {
    struct stat info = {};
    if (stat(file->path().c_str(), &info) != 0) continue;  // it has been removed since it was mapped
    const auto [same, is_new] = names.try_emplace({info.st_dev, info.st_ino}, file->path());
    if (is_new) continue;
    const std::string also = same->second == file->path() ? "" : fmt::format(", also as '{}'", same->second);
    return absl::InvalidArgumentError(
        fmt::format("'{}' is named twice{}; name it once (a weight says how often a source is drawn)",
                    file->path(), also));
  }
  return absl::OkStatus();
}

// That of a file which says itself what it is; kAuto: it does not.
absl::StatusOr<DataFormat> KnownFormat(const std::string& path) {
  FT_ASSIGN_OR_RETURN(const bool is_ftd, IsFtdFile(path));
  if (is_ftd) return DataFormat::kFtd;
  FT_ASSIGN_OR_RETURN(const bool holds_tensors, IsTensorFile(path));
  if (holds_tensors) return DataFormat::kSafetensors;
  return IsMegatronFile(path) ? DataFormat::kMegatron : DataFormat::kAuto;
}

absl::StatusOr<std::unique_ptr<DataFile>> OpenFile(const std::string& path, const DataInputs& inputs,
                                                   DataFormat format) {
  if (format == DataFormat::kAuto) {
    FT_ASSIGN_OR_RETURN(format, KnownFormat(path));
  }
  return format == DataFormat::kSafetensors ? OpenTensorFile(path, inputs)
                                            : OpenTokenExamples(path, inputs, format);
}

absl::StatusOr<std::vector<int64_t>> SharesOfEntries(const std::vector<DataEntry>& entries) {
  if (!entries[0].weight.has_value()) return std::vector<int64_t>{kShareUnit};
  std::vector<double> weights;
  for (const DataEntry& entry : entries) weights.push_back(entry.weight.value_or(0));
  return SharesOf(weights);
}

}  // namespace

int64_t Dataset::num_tokens() const {
  return std::accumulate(sources_.begin(), sources_.end(), int64_t{0},
                         [](int64_t sum, const DataSource& source) { return sum + source.num_tokens; });
}

std::string Dataset::doubt() const {
  std::string first;
  int64_t more = 0;
  for (const auto& file : files_) {
    if (file->doubt().empty()) continue;
    if (first.empty()) {
      first = file->doubt();
    } else {
      ++more;
    }
  }
  if (more == 0) return first;
  return fmt::format("{} (and {} more file{} that look{} like something else)", first, more,
                     more == 1 ? "" : "s", more == 1 ? "s" : "");
}

void Dataset::Read(int64_t index, absl::Span<void* const> rows) const {
  const auto after = std::upper_bound(first_sequence_.begin(), first_sequence_.end(), index);
  const auto file = static_cast<size_t>(after - first_sequence_.begin()) - 1;
  files_[file]->Read(index - first_sequence_[file], rows);
}

void Dataset::ReadConstants(absl::Span<void* const> inputs) const {
  for (size_t i = 0; i < inputs_.inputs.size(); ++i) {
    const proto::Input& input = inputs_.inputs[i];
    if (input.filling() == proto::Input::VALUE)
      std::memcpy(inputs[i], input.value().data(), input.value().size());
    if (input.filling() != proto::Input::CONSTANT) continue;
    const absl::Span<const uint8_t> bytes = files_.front()->Constant(i);
    std::memcpy(inputs[i], bytes.data(), bytes.size());
  }
}

absl::Status Dataset::CheckConstants() const {
  for (size_t i = 0; i < inputs_.inputs.size(); ++i) {
    if (inputs_.inputs[i].filling() != proto::Input::CONSTANT) continue;
    for (const auto& file : files_) {
      if (file->Constant(i) == files_.front()->Constant(i)) continue;
      return absl::InvalidArgumentError(
          fmt::format("tensor '{}' is a constant of the model, but is not the same in '{}' and '{}'",
                      inputs_.inputs[i].name(), files_.front()->path(), file->path()));
    }
  }
  return absl::OkStatus();
}

void Dataset::Add(std::unique_ptr<DataFile> file) {
  first_sequence_.push_back(first_sequence_.back() + file->num_examples());
  files_.push_back(std::move(file));
}

absl::Status Dataset::AddFiles(const std::string& path, DataFormat format) {
  if (format == DataFormat::kNpy || (format == DataFormat::kAuto && IsNpyFolder(path))) {
    FT_ASSIGN_OR_RETURN(std::unique_ptr<DataFile> folder, OpenNpyFolder(path, inputs_));
    Add(std::move(folder));
    return absl::OkStatus();
  }
  FT_ASSIGN_OR_RETURN(const std::vector<DataPath> found, FindDataFiles(path));
  for (const DataPath& file : found) {
    if (found.size() > 1 && IsMegatronIndex(file.path)) continue;  // the .bin beside it stands for both
    auto opened = OpenFile(file.path, inputs_, format);
    if (!opened.ok()) return file.of_folder ? OfFolder(opened.status()) : opened.status();
    Add(*std::move(opened));
  }
  return absl::OkStatus();
}

void Dataset::AddSource(std::optional<double> weight, int64_t share) {
  DataSource source{.weight = weight, .share = share};
  if (!sources_.empty()) source.first_file = sources_.back().first_file + sources_.back().num_files;
  source.num_files = files_.size() - source.first_file;
  source.first_sequence = first_sequence_[source.first_file];
  source.num_sequences = first_sequence_.back() - source.first_sequence;
  for (size_t i = source.first_file; i < files_.size(); ++i) source.num_tokens += files_[i]->num_tokens();
  sources_.push_back(source);
}

absl::StatusOr<std::unique_ptr<Dataset>> OpenDataset(const std::vector<DataEntry>& entries, DataInputs inputs,
                                                     DataFormat format) {
  FT_ASSIGN_OR_RETURN(const std::vector<int64_t> shares, SharesOfEntries(entries));
  auto dataset = absl::WrapUnique(new Dataset(std::move(inputs)));
  for (size_t i = 0; i < entries.size(); ++i) {
    FT_RETURN_IF_ERROR(dataset->AddFiles(entries[i].path, format));
    if (entries[i].weight.has_value()) dataset->AddSource(entries[i].weight, shares[i]);
  }
  if (dataset->sources_.empty()) dataset->AddSource({}, shares[0]);
  FT_RETURN_IF_ERROR(CheckDistinct(dataset->files_));
  FT_RETURN_IF_ERROR(dataset->CheckConstants());
  return dataset;
}

absl::StatusOr<std::unique_ptr<Dataset>> OpenDataset(const std::vector<DataEntry>& entries,
                                                     int64_t vocab_size, int64_t seq_len, DataFormat format) {
  return OpenDataset(entries, TokenInputs(vocab_size, seq_len), format);
}

absl::StatusOr<std::unique_ptr<Dataset>> OpenDataset(const std::string& path, int64_t vocab_size,
                                                     int64_t seq_len, DataFormat format) {
  return OpenDataset(std::vector<DataEntry>{{.path = path}}, vocab_size, seq_len, format);
}

}  // namespace ft
