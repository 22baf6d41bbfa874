#include "runtime/base/stored_parts.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <charconv>
#include <optional>
#include <utility>

#include "absl/strings/str_split.h"
#include "runtime/base/printable.h"
#include "runtime/base/status_macros.h"

namespace ft {
namespace {

absl::Status Refuse(std::string_view pattern, std::string_view why) {
  return absl::InvalidArgumentError(fmt::format("the names {} {}", Quote(pattern), why));
}

std::optional<int64_t> NumberOf(std::string_view text) {
  int64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size() || number < 0) return std::nullopt;
  return number;
}

// What stands between two braces; empty when it is of no known form, or too many.
std::vector<std::string> Choices(std::string_view text) {
  const size_t dots = text.find("..");
  if (dots == std::string_view::npos) return absl::StrSplit(std::string(text), ',');
  const auto first = NumberOf(text.substr(0, dots)), last = NumberOf(text.substr(dots + 2));
  std::vector<std::string> choices;
  if (!first.has_value() || !last.has_value() || *last < *first ||
      *last - *first >= static_cast<int64_t>(kMostBraceNames))
    return choices;
  for (int64_t number = *first; number <= *last; ++number) choices.push_back(std::to_string(number));
  return choices;
}

}  // namespace

absl::StatusOr<std::vector<std::string>> ExpandBraces(std::string_view pattern) {
  std::vector<std::string> names = {""};
  std::string_view rest = pattern;
  while (true) {
    const size_t open = rest.find_first_of("{}");
    for (std::string& name : names) name += rest.substr(0, open);
    if (open == std::string_view::npos) break;
    const size_t close = rest.find_first_of("{}", open + 1);
    if (rest[open] == '}' || close == std::string_view::npos || rest[close] == '{')
      return Refuse(pattern, "have a brace without its partner");
    const std::vector<std::string> choices = Choices(rest.substr(open + 1, close - open - 1));
    if (choices.empty()) return Refuse(pattern, "have a brace that is neither {from..to} nor {a,b}");
    if (choices.size() > kMostBraceNames / names.size())
      return Refuse(pattern, fmt::format("are more than {}", kMostBraceNames));
    std::vector<std::string> longer;
    for (const std::string& name : names) {
      for (const std::string& choice : choices) longer.push_back(name + choice);
    }
    names = std::move(longer);
    rest = rest.substr(close + 1);
  }
  for (const std::string& name : names) {
    if (name.empty()) return Refuse(pattern, "have an empty one");
  }
  return names;
}

absl::StatusOr<std::vector<StoredPart>> StoredParts(std::string_view stored_as, std::vector<int64_t> shape) {
  std::vector<StoredPart> parts;
  if (stored_as.empty()) return parts;
  FT_ASSIGN_OR_RETURN(std::vector<std::string> names, ExpandBraces(stored_as));
  const std::vector<int64_t> whole = shape;
  auto left = static_cast<int64_t>(names.size());
  // A dimension that the parts use up is no longer there.
  while (left > 1 && !shape.empty() && left % shape.front() == 0) {
    left /= shape.front();
    shape.erase(shape.begin());
  }
  if (left > 1 && (shape.empty() || shape.front() % left != 0))
    return absl::InvalidArgumentError(fmt::format("{} names {} tensors, which do not divide one of {}",
                                                  Quote(stored_as), names.size(), fmt::join(whole, "x")));
  if (left > 1) shape.front() /= left;
  for (std::string& name : names) parts.push_back({std::move(name), shape});
  return parts;
}

}  // namespace ft
