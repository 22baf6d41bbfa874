#include "runtime/checkpoint/unused_tensors.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
#include <map>

#include "runtime/base/printable.h"

namespace ft {
namespace {

constexpr size_t kListBytes = 700;

bool IsNumber(std::string_view text) {
  return !text.empty() && text.size() < 10 &&
         std::all_of(text.begin(), text.end(), [](unsigned char c) { return std::isdigit(c); });
}

// The dotted parts of a name.
std::vector<std::string_view> PartsOf(std::string_view name) {
  std::vector<std::string_view> parts;
  for (size_t dot = name.find('.'); dot != std::string_view::npos; dot = name.find('.')) {
    parts.push_back(name.substr(0, dot));
    name.remove_prefix(dot + 1);
  }
  parts.push_back(name);
  return parts;
}

// Names that are one but for the first number in them.
struct Group {
  std::string name;  // of its only member, or with * for the number
  size_t members = 0;
  int least = 0, most = 0;
};

std::string GroupText(const Group& group) {
  const std::string name = OneLine(group.name, kMaxNameBytes);
  if (group.members < 2) return name;
  return fmt::format("{} ({}: {} to {})", name, group.members, group.least, group.most);
}

}  // namespace

bool IsIgnoredBuffer(std::string_view tensor) {
  if (tensor.ends_with("rotary_emb.inv_freq")) return true;
  const std::vector<std::string_view> parts = PartsOf(tensor);
  const size_t n = parts.size();
  return n >= 4 && parts[n - 4] == "h" && IsNumber(parts[n - 3]) &&
         (parts[n - 2] == "attn" || parts[n - 2] == "crossattention") &&
         (parts[n - 1] == "bias" || parts[n - 1] == "masked_bias");
}

std::string NamesText(absl::Span<const std::string> names) {
  std::vector<Group> groups;
  std::map<std::string, size_t> index;
  for (const std::string& name : names) {
    std::vector<std::string_view> parts = PartsOf(name);
    const auto part = std::find_if(parts.begin(), parts.end(), IsNumber);
    const int number = part == parts.end() ? -1 : std::stoi(std::string(*part));
    if (part != parts.end()) *part = "*";
    const std::string pattern = fmt::format("{}", fmt::join(parts, "."));
    const auto [place, is_new] = index.try_emplace(pattern, groups.size());
    if (is_new) groups.push_back({name, 0, number, number});
    Group& group = groups[place->second];
    if (++group.members == 2) group.name = pattern;
    group.least = std::min(group.least, number);
    group.most = std::max(group.most, number);
  }
  std::string text;
  size_t shown = 0;
  for (const Group& group : groups) {
    if (text.size() > kListBytes) break;
    text += (shown++ > 0 ? ", " : "") + GroupText(group);
  }
  if (shown < groups.size()) text += fmt::format(" and {} more", groups.size() - shown);
  return text;
}

}  // namespace ft
