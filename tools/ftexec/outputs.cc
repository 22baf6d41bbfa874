#include "tools/ftexec/outputs.h"

#include <fnmatch.h>

#include <algorithm>
#include <filesystem>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include "absl/strings/str_cat.h"
#include "runtime/base/status_macros.h"
#include "runtime/checkpoint/state/folder.h"
#include "tools/ftexec/initial_files.h"
#include "tools/ftexec/rank_log.h"

namespace ft {
namespace {

namespace fs = std::filesystem;

// The same for all names of a file or folder, whether it is there or not.
fs::path Resolved(const std::string& path) {
  std::error_code ignored;
  const fs::path whole = fs::weakly_canonical(fs::absolute(path, ignored), ignored);
  return whole.has_filename() ? whole : whole.parent_path();
}

// What leads from a folder to `path`: "." for itself; empty where `path` is elsewhere.
fs::path Below(const fs::path& path, const fs::path& folder) {
  const fs::path way = path.lexically_relative(folder);
  return way.empty() || *way.begin() == ".." ? fs::path() : way;
}

bool Everything(std::string_view) { return true; }

struct Input {
  const char* name;
  std::string path;
};

struct Output {
  const char* name;
  const std::string& path;
  bool is_folder;
  // Names in it that no other output may have: of a file, and of a folder that comes to be as a whole, all.
  bool (*owns)(std::string_view name);
};

std::vector<Output> OutputsOf(const Flags& flags) {
  static const std::string none;
  const Output all[] = {
      {"--save-weights", flags.save_weights, false, Everything},
      {"--metrics", flags.metrics, false, Everything},
      {"--trace", flags.trace, false, Everything},
      {"--save-hf", flags.save_hf, true, Everything},
      {"--checkpoint-dir", flags.saves() ? flags.checkpoint_dir : none, true, IsOfCheckpoints},
      {"--log-dir", flags.log_dir, true, RankLog::IsName},
  };
  std::vector<Output> given;
  for (const Output& output : all) {
    if (!output.path.empty()) given.push_back(output);
  }
  return given;
}

// What cannot be read is for whoever opens it to complain about.
void AddDataFiles(const char* name, const std::vector<DataEntry>& entries, std::vector<Input>& inputs) {
  for (const DataEntry& entry : entries) {
    const absl::StatusOr<std::vector<DataPath>> found = FindDataFiles(entry.path);
    if (!found.ok()) continue;
    for (const DataPath& file : *found) inputs.push_back({name, file.path});
  }
}

std::vector<Input> InputsOf(const Flags& flags) {
  std::vector<Input> inputs = {
      {"the plan", flags.plan}, {"--init", flags.init}, {"--adapter", AdapterFile(flags.adapter)}};
  AddDataFiles("--data", flags.data, inputs);
  AddDataFiles("--eval-data", flags.eval_data, inputs);
  return inputs;
}

absl::Status AreSame(const char* a, const char* b, const Output& output) {
  return absl::InvalidArgumentError(absl::StrCat(a, " and ", b, " are the same ",
                                                 output.is_folder ? "folder" : "file", ", '", output.path,
                                                 "'; give another name"));
}

// Whether a run that comes after would read `output` as data of this entry: a folder that it lies in, or a
// glob that it, or a folder that it lies in, matches.
bool WouldBeRead(const std::string& output, const std::string& entry) {
  std::error_code ignored;
  if (fs::is_directory(entry, ignored)) {
    const fs::path way = Below(Resolved(output), Resolved(entry));
    return way == "." || (!way.empty() && !way.native().starts_with('.'));  // hidden ones are passed over
  }
  if (fs::exists(entry, ignored)) return false;
  const std::string glob = fs::absolute(entry, ignored).lexically_normal();
  for (fs::path path = Resolved(output); path.has_relative_path(); path = path.parent_path()) {
    if (fnmatch(glob.c_str(), path.c_str(), FNM_PATHNAME | FNM_PERIOD) == 0) return true;
  }
  return false;
}

absl::Status CheckData(const Output& output, const char* data, const std::vector<DataEntry>& entries) {
  for (const DataEntry& entry : entries) {
    if (!WouldBeRead(output.path, entry.path)) continue;
    return absl::InvalidArgumentError(absl::StrCat(output.name, " '", output.path, "' would lie in '",
                                                   entry.path, "', of which ", data,
                                                   " reads all files; write it elsewhere"));
  }
  return absl::OkStatus();
}

// Only --save-weights may replace --init. Folders are asked about what is in them.
absl::Status CheckInputs(const Output& output, const std::vector<Input>& inputs) {
  if (output.is_folder) return absl::OkStatus();
  const fs::path path = Resolved(output.path);
  const bool may_replace_init = output.name == std::string_view("--save-weights");
  for (const Input& input : inputs) {
    if (input.path.empty() || Resolved(input.path) != path) continue;
    if (may_replace_init && input.name == std::string_view("--init")) continue;
    return AreSame(output.name, input.name, output);
  }
  return absl::OkStatus();
}

// `inner` in what `outer` writes or makes. Checkpoints and logs may lie in one folder.
absl::Status CheckNested(const Output& outer, const Output& inner) {
  const fs::path way = Below(Resolved(inner.path), Resolved(outer.path));
  if (way.empty() || way == "." || !outer.owns(way.begin()->native())) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(inner.name, " '", inner.path, "' would lie in what ",
                                                 outer.name, " '", outer.path,
                                                 "' writes itself; give another name"));
}

absl::Status CheckPair(const Output& a, const Output& b) {
  FT_RETURN_IF_ERROR(CheckNested(a, b));
  FT_RETURN_IF_ERROR(CheckNested(b, a));
  const bool may_share = a.owns != Everything && b.owns != Everything;
  return may_share || Resolved(a.path) != Resolved(b.path) ? absl::OkStatus() : AreSame(b.name, a.name, b);
}

}  // namespace

bool LiesAmongData(const std::string& path, const Flags& flags) {
  const auto reads = [&path](const DataEntry& entry) { return WouldBeRead(path, entry.path); };
  return !path.empty() && (std::any_of(flags.data.begin(), flags.data.end(), reads) ||
                           std::any_of(flags.eval_data.begin(), flags.eval_data.end(), reads));
}

absl::Status CheckOutputs(const Flags& flags) {
  const std::vector<Input> inputs = InputsOf(flags);
  const std::vector<Output> outputs = OutputsOf(flags);
  for (size_t i = 0; i < outputs.size(); ++i) {
    std::error_code ignored;
    // /dev/null may be given several times.
    if (fs::is_character_file(outputs[i].path, ignored)) continue;
    FT_RETURN_IF_ERROR(CheckInputs(outputs[i], inputs));
    FT_RETURN_IF_ERROR(CheckData(outputs[i], "--data", flags.data));
    FT_RETURN_IF_ERROR(CheckData(outputs[i], "--eval-data", flags.eval_data));
    for (size_t j = 0; j < i; ++j) FT_RETURN_IF_ERROR(CheckPair(outputs[j], outputs[i]));
  }
  return absl::OkStatus();
}

}  // namespace ft
