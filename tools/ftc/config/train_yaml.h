// train.yaml as a list of its keys: every leaf with its path, its text and its place.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

namespace ftc {

struct YamlEntry {
  std::string path;  // "fsdp.fsdp_sharding_strategy"
  std::string text;  // of a list: its items, joined by commas; "null" and "" as they are
  bool is_list = false;
  bool is_nested = false;   // a list of anything but words; its text is empty
  bool is_section = false;  // a map; its leaves are entries of their own
  // Of the key and of the value, from 1.
  int key_line = 0;
  int line = 0;
  int column = 0;
  std::string file;  // as the user, or the file that names it, wrote it
};

struct TrainYaml {
  std::string name;  // as the user wrote it
  std::vector<YamlEntry> entries;
};

// A file of a few lines can stand for any number of entries by aliases of aliases.
inline constexpr size_t kMostYamlEntries = 10'000;

// Merge keys (`<<: *base`) are followed; null is the text "null". InvalidArgument (exit status 65), with the
// name and the line: what ParseYaml refuses, a key that is given twice in one map or is empty, a top that is
// no map, more than `most_entries` keys, values and items of lists once aliases are followed.
absl::StatusOr<TrainYaml> ParseTrainYaml(std::string_view text, const std::string& name,
                                         size_t most_entries = kMostYamlEntries);

// The same from a file. Errors: PosixError's when it cannot be read (74); InvalidArgument for more than 1
// MiB.
absl::StatusOr<TrainYaml> ReadTrainYaml(const std::string& path);

}  // namespace ftc
