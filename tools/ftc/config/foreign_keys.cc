#include "tools/ftc/config/foreign_keys.h"

#include <algorithm>

#include "tools/ftc/config/values.h"

namespace ftc {
const std::vector<ForeignKey>& ForeignKeys() {
  static const std::vector<ForeignKey>* const kKeys = [] {
    auto* keys = new std::vector<ForeignKey>;
#define AtRest(...) {__VA_ARGS__}
#define FT_FOREIGN(USE, REASON, AT_REST, ...) \
  for (const char* key : {__VA_ARGS__}) keys->push_back({key, ForeignKey::Use::USE, REASON, AT_REST});
#include "tools/ftc/config/foreign_keys.def"
#undef AtRest
    return keys;
  }();
  return *kKeys;
}

bool SaysNotUsed(const YamlEntry& entry) {
  if (entry.is_list) return entry.text.empty() && !entry.is_nested;
  const std::string plain = Plain(entry.text);
  return plain.empty() || plain == "none" || plain == "null" || ReadBool(plain) == false;
}

bool IsAtRest(const ForeignKey& key, const YamlEntry& entry) {
  const auto rests = [&](std::string_view value) {
    return std::find(key.at_rest.begin(), key.at_rest.end(), value) != key.at_rest.end();
  };
  // Where true is at rest, false is what asks.
  if (rests("true") && !entry.is_list && ReadBool(entry.text) == false) return false;
  if (SaysNotUsed(entry)) return true;
  return !entry.is_list && (Plain(entry.text) == "auto" || rests(entry.text) || rests(Plain(entry.text)));
}

bool IsComment(const std::string& path) {
  const size_t dot = path.rfind('.');
  return path.substr(dot == path.npos ? 0 : dot + 1).starts_with("_comment");
}

}  // namespace ftc
