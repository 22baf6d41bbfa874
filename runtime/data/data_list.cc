#include "runtime/data/data_list.h"

#include <fmt/format.h>
#include <glob.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <filesystem>
#include <system_error>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "runtime/base/posix_error.h"
#include "runtime/base/status_macros.h"
#include "runtime/data/source_mix.h"

namespace ft {
namespace {

constexpr std::string_view kGlobLetters = "*?[";

bool IsThere(const std::string& path) {
  struct stat info;
  return stat(path.c_str(), &info) == 0;
}

bool IsFolder(const std::string& path) {
  struct stat info;
  return stat(path.c_str(), &info) == 0 && S_ISDIR(info.st_mode);
}

absl::StatusOr<DataEntry> ParseEntry(const std::string& text) {
  const size_t colon = text.rfind(':');
  if (colon == std::string::npos || IsThere(text)) return DataEntry{.path = text};
  const std::string weight = text.substr(colon + 1);
  if (weight.find('/') != std::string::npos || weight.find_first_of(kGlobLetters) != std::string::npos)
    return DataEntry{.path = text};
  double value = 0;
  // Written so that NaN fails; what is too large for a double is infinite.
  if (!absl::SimpleAtod(weight, &value) || !(value > 0) || !std::isfinite(value)) {
    return absl::InvalidArgumentError(fmt::format(
        "'{}': the weight '{}' is no finite number above 0 (and no file has that whole name)", text, weight));
  }
  return DataEntry{.path = text.substr(0, colon), .weight = value};
}

absl::Status CheckWeights(const std::vector<DataEntry>& entries) {
  const auto has_none = [](const DataEntry& entry) { return !entry.weight.has_value(); };
  const auto without = std::find_if(entries.begin(), entries.end(), has_none);
  if (without == entries.end()) {
    std::vector<double> weights;
    for (const DataEntry& entry : entries) weights.push_back(*entry.weight);
    const absl::StatusOr<std::vector<int64_t>> shares = SharesOf(weights);
    return shares.status();
  }
  const auto with = std::find_if_not(entries.begin(), entries.end(), has_none);
  if (with == entries.end()) return absl::OkStatus();
  return absl::InvalidArgumentError(fmt::format(
      "'{}' has a weight and '{}' has none; give one to every entry or to none", with->path, without->path));
}

// glob(3) tells of a folder that it cannot read through a function without context.
thread_local int glob_error = 0;
thread_local std::string glob_folder;

int RememberError(const char* folder, int error) {
  glob_error = error;
  glob_folder = folder;
  return 1;
}

absl::StatusOr<std::vector<std::string>> Matches(const std::string& pattern) {
  glob_t found = {};
  const absl::Cleanup free_found = [&found] { globfree(&found); };
  glob_error = 0;
  const int result = glob(pattern.c_str(), GLOB_NOSORT, RememberError, &found);
  if (result == GLOB_NOMATCH) return absl::NotFoundError(fmt::format("no file matches '{}'", pattern));
  if (result == GLOB_NOSPACE)
    return absl::ResourceExhaustedError(fmt::format("no memory to list '{}'", pattern));
  if (result != 0) return PosixError(glob_error == 0 ? EIO : glob_error, "read the folder", glob_folder);
  std::vector<std::string> paths(found.gl_pathv, found.gl_pathv + found.gl_pathc);
  std::sort(paths.begin(), paths.end());
  return paths;
}

absl::StatusOr<std::vector<DataPath>> Members(const std::string& folder) {
  std::vector<DataPath> members;
  std::error_code error;
  for (std::filesystem::directory_iterator at(folder, error), end; !error && at != end; at.increment(error)) {
    if (!at->path().filename().native().starts_with('.'))
      members.push_back({.path = at->path().native(), .of_folder = true});
  }
  if (error) return PosixError(error.value(), "read the folder", folder);
  if (members.empty())
    return absl::InvalidArgumentError(fmt::format("the folder '{}' has no file in it", folder));
  std::sort(members.begin(), members.end(), [](const auto& a, const auto& b) { return a.path < b.path; });
  return members;
}

}  // namespace

absl::StatusOr<std::vector<DataEntry>> ParseDataList(const std::string& text) {
  if (IsThere(text)) return std::vector<DataEntry>{{.path = text}};
  std::vector<DataEntry> entries;
  for (const auto part : absl::StrSplit(text, ',')) {
    FT_ASSIGN_OR_RETURN(DataEntry entry, ParseEntry(std::string(part)));
    if (entry.path.empty())
      return absl::InvalidArgumentError(fmt::format("'{}' has an entry without a path", text));
    entries.push_back(std::move(entry));
  }
  FT_RETURN_IF_ERROR(CheckWeights(entries));
  return entries;
}

absl::StatusOr<std::vector<DataPath>> FindDataFiles(const std::string& path) {
  if (IsFolder(path)) return Members(path);
  if (IsThere(path) || path.find_first_of(kGlobLetters) == std::string::npos)
    return std::vector<DataPath>{{.path = path}};
  FT_ASSIGN_OR_RETURN(const std::vector<std::string> matches, Matches(path));
  std::vector<DataPath> files;
  for (const std::string& match : matches) {
    if (!IsFolder(match)) {
      files.push_back({.path = match});
      continue;
    }
    FT_ASSIGN_OR_RETURN(const std::vector<DataPath> members, Members(match));
    files.insert(files.end(), members.begin(), members.end());
  }
  return files;
}

}  // namespace ft
