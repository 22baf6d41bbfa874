#include "runtime/data/data_text.h"

#include <fmt/format.h>

#include <algorithm>

namespace ft {
namespace {

// " of 52000 packed documents, 99.3% filled".
std::string DocumentsText(Dataset::Files files) {
  DataFile::Documents all;
  for (const auto& file : files) {
    const DataFile::Documents documents = file->documents();
    all.count += documents.count;
    all.filled += documents.filled;
    all.places += documents.places;
    all.packed |= documents.packed;
  }
  if (all.count == 0) return "";
  return fmt::format(" of {} {}document{}, {:.1f}% filled", all.count, all.packed ? "packed " : "",
                     all.count == 1 ? "" : "s",
                     100 * static_cast<double>(all.filled) / static_cast<double>(all.places));
}

std::string Summary(Dataset::Files files, int64_t tokens, int64_t sequences) {
  std::vector<std::string_view> formats;
  for (const auto& file : files) {
    const std::string_view name = Name(file->format());
    if (std::find(formats.begin(), formats.end(), name) == formats.end()) formats.push_back(name);
  }
  if (tokens == 0) return fmt::format("({}, {} examples)", fmt::join(formats, " and "), sequences);
  return fmt::format("({}, {} tokens, {} sequences{})", fmt::join(formats, " and "), tokens, sequences,
                     DocumentsText(files));
}

std::string Files(const Dataset& dataset, const DataSource& source) {
  const Dataset::Files files = dataset.files(source);
  const std::string names = files.size() == 1 ? files[0]->path()
                                              : fmt::format("{} files, {} ... {}", files.size(),
                                                            files.front()->path(), files.back()->path());
  return names + " " + Summary(files, source.num_tokens, source.num_sequences);
}

}  // namespace

std::string DataText(const Dataset& dataset) {
  const std::vector<DataSource>& sources = dataset.sources();
  if (sources.size() == 1) return Files(dataset, sources[0]);
  return fmt::format("{} sources {}", sources.size(),
                     Summary(dataset.files(), dataset.num_tokens(), dataset.num_sequences()));
}

std::vector<std::string> SourceLines(const Dataset& dataset) {
  std::vector<std::string> lines;
  int64_t shares = 0;
  for (const DataSource& source : dataset.sources()) shares += source.share;
  for (const DataSource& source : dataset.sources()) {
    if (!source.weight.has_value()) continue;
    lines.push_back(fmt::format("{:.4g}% from {}",
                                100 * static_cast<double>(source.share) / static_cast<double>(shares),
                                Files(dataset, source)));
  }
  return lines;
}

}  // namespace ft
