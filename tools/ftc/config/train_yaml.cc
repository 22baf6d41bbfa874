#include "tools/ftc/config/train_yaml.h"

#include <map>
#include <memory>
#include <set>
#include <utility>

#include "fmt/format.h"
#include "runtime/base/regular_file.h"
#include "runtime/base/status_macros.h"
#include "tools/ftc/config/yaml_file.h"

namespace ftc {
namespace {

using Kind = YamlNode::Kind;
using Item = std::pair<std::shared_ptr<const YamlNode>, std::shared_ptr<const YamlNode>>;

class Flattener {
 public:
  Flattener(TrainYaml& file, size_t most_entries) : file_(file), most_entries_(most_entries) {}

  absl::Status Flatten(const YamlNode& map, const std::string& prefix) {
    FT_ASSIGN_OR_RETURN(const std::vector<Item> items, Merged(map, prefix));
    for (const auto& [key, value] : items) FT_RETURN_IF_ERROR(Add(*key, *value, prefix + key->text));
    return absl::OkStatus();
  }

 private:
  absl::Status Refuse(const YamlNode& node, const std::string& message) const {
    return absl::InvalidArgumentError(
        fmt::format("{}:{}:{}: {}", file_.name, node.line, node.column, message));
  }

  absl::Status Count(const YamlNode& node) {
    if (++visited_ <= most_entries_) return absl::OkStatus();
    return Refuse(node, fmt::format("more than {} entries, aliases followed", most_entries_));
  }

  // The items of a map and after them those of the maps that it merges and does not override.
  absl::StatusOr<std::vector<Item>> Merged(const YamlNode& map, const std::string& prefix) {
    std::vector<Item> items;
    std::map<std::string, int> lines;
    for (const auto& [key, value] : map.items) {
      FT_RETURN_IF_ERROR(Count(*key));
      if (key->text.empty()) return Refuse(*key, "an empty key");
      const auto [first, is_new] = lines.emplace(key->text, key->line);
      if (!is_new)
        return Refuse(
            *key, fmt::format("'{}{}' is given twice, first in line {}", prefix, key->text, first->second));
      if (key->text != "<<") items.emplace_back(key, value);
    }
    for (const auto& [key, value] : map.items) {
      if (key->text != "<<") continue;
      std::vector<Item> bases;
      if (value->kind == Kind::kList)
        bases = value->items;
      else
        bases.emplace_back(nullptr, value);
      for (const auto& [none, base] : bases) {
        FT_RETURN_IF_ERROR(Count(*base));
        if (base->kind != Kind::kMap) return Refuse(*key, "'<<' merges maps alone");
        FT_ASSIGN_OR_RETURN(const std::vector<Item> merged, Merged(*base, prefix));
        for (const Item& item : merged) {
          if (lines.emplace(item.first->text, item.first->line).second) items.push_back(item);
        }
      }
    }
    return items;
  }

  absl::Status Add(const YamlNode& key, const YamlNode& value, const std::string& path) {
    FT_RETURN_IF_ERROR(Count(value));
    YamlEntry entry;
    entry.path = path;
    entry.file = file_.name;
    entry.key_line = key.line;
    entry.line = value.line;
    entry.column = value.column;
    switch (value.kind) {
      case Kind::kMap:
        entry.is_section = true;
        file_.entries.push_back(entry);
        return Flatten(value, path + ".");
      case Kind::kNull:
        entry.text = "null";
        entry.line = key.line;  // a value that is left out has no place
        entry.column = key.column;
        break;
      case Kind::kScalar:
        entry.text = value.text;
        break;
      case Kind::kList:
        entry.is_list = true;
        for (const auto& [none, item] : value.items) {
          FT_RETURN_IF_ERROR(Count(*item));
          entry.is_nested |= item->kind != Kind::kScalar || item->text.empty();
          entry.text += (entry.text.empty() ? "" : ",") + item->text;
        }
        if (entry.is_nested) entry.text.clear();
        break;
    }
    file_.entries.push_back(std::move(entry));
    return absl::OkStatus();
  }

  TrainYaml& file_;
  const size_t most_entries_;
  size_t visited_ = 0;
};

}  // namespace

absl::StatusOr<TrainYaml> ParseTrainYaml(std::string_view text, const std::string& name,
                                         size_t most_entries) {
  FT_ASSIGN_OR_RETURN(const std::shared_ptr<const YamlNode> root, ParseYaml(text, name));
  TrainYaml file;
  file.name = name;
  if (root->kind == Kind::kNull) return file;  // comments alone
  if (root->kind != Kind::kMap)
    return absl::InvalidArgumentError(
        fmt::format("{}:{}:{}: expected keys and values, such as 'strategy: full_shard'", name, root->line,
                    root->column));
  FT_RETURN_IF_ERROR(Flattener(file, most_entries).Flatten(*root, ""));
  return file;
}

absl::StatusOr<TrainYaml> ReadTrainYaml(const std::string& path) {
  FT_ASSIGN_OR_RETURN(const std::string text, ft::ReadText(path, "configuration", ft::kMaxConfigBytes));
  return ParseTrainYaml(text, path);
}

}  // namespace ftc
