// What a user names as data: files, folders, globs, lists of them, with weights or without.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

namespace ft {

// One entry of a list.
struct DataEntry {
  std::string path = {};              // a file, a folder or a glob
  std::optional<double> weight = {};  // finite, above 0
};

// PATH[:WEIGHT][,...]. A text that is the name of an existing file or folder as it stands is one entry,
// whatever commas and colons are in it; so is an entry with a colon. What follows the last colon of another
// entry is its weight, unless it has a slash or makes a glob (* ? [). Every entry has a weight, or none has.
// Nothing but the existence of files is looked up here. Errors: InvalidArgument, one line, for an empty
// entry; a weight that is no finite number above 0, or less than kLeastShare of all; weights for some entries
// only.
absl::StatusOr<std::vector<DataEntry>> ParseDataList(const std::string& text);

// A file that an entry stands for.
struct DataPath {
  std::string path;
  bool of_folder = false;  // nobody named it
};

// The files of `path`, which is a file; a folder, whose members are taken all but the hidden ones (with a
// leading dot), folders among them included, so that nothing in it is passed over without a word; or, where
// nothing has that name, a glob (* ? [set], none of them matches a leading dot), each match being a file or a
// folder. Sorted by name, byte by byte. A file that does not exist is returned all the same, for whoever
// opens it to say so. Errors: NotFound for a glob that matches nothing; InvalidArgument for an empty folder;
// those of PosixError for a folder that cannot be read.
absl::StatusOr<std::vector<DataPath>> FindDataFiles(const std::string& path);

}  // namespace ft
