// A YAML file as a tree with the place of every node. yaml-cpp, which throws, stays behind this header.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"

namespace ftc {

struct YamlNode {
  enum class Kind { kScalar, kNull, kList, kMap };
  Kind kind = Kind::kScalar;
  std::string text;  // scalars
  // From 1.
  int line = 1;
  int column = 1;
  // Lists: values with no key. Maps: in the order of the file, keys not yet checked for being unique. Nodes
  // are shared where an alias stands for its anchor.
  std::vector<std::pair<std::shared_ptr<const YamlNode>, std::shared_ptr<const YamlNode>>> items;
};

// The one document of `text`; a map without items when there is none. `name` stands for the file in errors.
// InvalidArgument, "train.yaml:3:7: ...": not UTF-8, not YAML, more than one document, nested deeper than
// 100, an alias within its own anchor, a tag that is not one of YAML's own.
absl::StatusOr<std::shared_ptr<const YamlNode>> ParseYaml(std::string_view text, const std::string& name);

}  // namespace ftc
