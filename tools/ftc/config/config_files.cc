#include "tools/ftc/config/config_files.h"

#include <filesystem>
#include <iterator>
#include <system_error>

#include "fmt/format.h"
#include "runtime/base/status_macros.h"
#include "tools/ftc/config/file_view.h"
#include "tools/ftc/config/foreign_keys.h"
#include "tools/ftc/config/key_table.h"

namespace ftc {
namespace {

namespace fs = std::filesystem;

std::string Locate(const YamlEntry& entry) {
  const fs::path name(entry.text), beside = fs::path(entry.file).parent_path() / name;
  std::error_code ignored;
  return fs::exists(beside, ignored) ? beside.string() : name.string();
}

absl::StatusOr<TrainYaml> Follow(const YamlEntry& entry) {
  absl::StatusOr<TrainYaml> file = ReadTrainYaml(Locate(entry));
  if (file.ok() || absl::IsInvalidArgument(file.status())) return file;
  return absl::Status(file.status().code(),
                      fmt::format("'{}' in {}:{}: {}, neither beside it nor here", entry.path, entry.file,
                                  entry.key_line, std::string(file.status().message())));
}

}  // namespace

bool NamesFile(const YamlEntry& entry) {
  if (entry.is_section || entry.is_list || SaysNotUsed(entry)) return false;
  return IdentityOf(entry.path) == "deepspeed_config_file" || entry.path == "deepspeed" ||
         entry.path == "deepspeed_config";
}

absl::StatusOr<TrainYaml> ReadConfigFiles(const std::string& path) {
  FT_ASSIGN_OR_RETURN(TrainYaml file, ReadTrainYaml(path));
  const FileView view(file);
  const Distribution distribution = view.distribution();
  if (distribution != Distribution::kUnsaid && distribution != Distribution::kDeepSpeed) return file;
  TrainYaml named;
  for (const YamlEntry& entry : file.entries) {
    if (!NamesFile(entry)) continue;
    if (!named.name.empty())
      return absl::InvalidArgumentError(
          fmt::format("{}:{}: '{}' names a second DeepSpeed file", entry.file, entry.key_line, entry.path));
    FT_ASSIGN_OR_RETURN(named, Follow(entry));
  }
  for (const YamlEntry& entry : named.entries) {
    if (NamesFile(entry))
      return absl::InvalidArgumentError(fmt::format("{}:{}: '{}' in a DeepSpeed file names another one",
                                                    entry.file, entry.key_line, entry.path));
  }
  file.entries.insert(file.entries.end(), std::make_move_iterator(named.entries.begin()),
                      std::make_move_iterator(named.entries.end()));
  return file;
}

}  // namespace ftc
