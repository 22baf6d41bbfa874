#include "runtime/base/version.h"

#include "absl/strings/str_cat.h"

namespace ft {

extern const char kCommit[];  // of the source that the build writes

std::string VersionText(const std::string& program, const Features& features) {
  std::string text = absl::StrCat(program, " ", FT_VERSION, ", commit ", kCommit);
  for (const auto& [name, value] : features) absl::StrAppend(&text, "\n", name, ": ", value);
  return text;
}

}  // namespace ft
