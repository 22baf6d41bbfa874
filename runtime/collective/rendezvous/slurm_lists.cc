#include "runtime/collective/rendezvous/slurm_lists.h"

#include <algorithm>
#include <cstdint>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "runtime/base/status_macros.h"

namespace ft {
namespace {

constexpr size_t kMaxNodes = 1 << 16;
constexpr size_t kMaxDigits = 9;     // of a node's number
constexpr size_t kMaxLetters = 255;  // of a name: more than DNS allows

absl::Status Wrong(absl::string_view what) { return absl::InvalidArgumentError(what); }

absl::Status TooMany() { return Wrong(absl::StrCat("has more than ", kMaxNodes, " nodes")); }

absl::StatusOr<int64_t> ReadDigits(absl::string_view text) {
  int64_t number = 0;
  const bool digits = std::all_of(text.begin(), text.end(), absl::ascii_isdigit);
  if (!digits || text.size() > kMaxDigits || !absl::SimpleAtoi(text, &number))
    return Wrong(absl::StrCat("has '", text, "' where a number belongs"));
  return number;
}

// Appends what one range of a bracket stands for: "7", or "01-03".
absl::Status AppendRange(absl::string_view range, std::vector<std::string>& numbers) {
  const std::pair<absl::string_view, absl::string_view> ends = absl::StrSplit(range, absl::MaxSplits('-', 1));
  FT_ASSIGN_OR_RETURN(const int64_t first, ReadDigits(ends.first));
  int64_t last = first;
  if (absl::StrContains(range, '-')) {
    FT_ASSIGN_OR_RETURN(last, ReadDigits(ends.second));
  }
  if (last < first) return Wrong(absl::StrCat("has the range '", range, "', which runs backwards"));
  if (static_cast<uint64_t>(last - first) >= kMaxNodes - numbers.size()) return TooMany();
  for (int64_t number = first; number <= last; ++number) {
    const std::string digits = absl::StrCat(number);
    const size_t zeros = ends.first.size() - std::min(ends.first.size(), digits.size());
    numbers.push_back(std::string(zeros, '0') + digits);
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<std::string>> ExpandBracket(absl::string_view ranges) {
  std::vector<std::string> numbers;
  for (const absl::string_view range : absl::StrSplit(ranges, ','))
    FT_RETURN_IF_ERROR(AppendRange(range, numbers));
  return numbers;
}

// The names that one element of the list stands for.
absl::StatusOr<std::vector<std::string>> ExpandElement(absl::string_view element) {
  if (element.empty()) return Wrong("has an empty name");
  std::vector<std::string> names = {""};
  while (!element.empty()) {
    const size_t open = element.find('[');
    const absl::string_view plain = element.substr(0, open);
    for (const char c : plain) {
      if (!absl::ascii_isgraph(static_cast<unsigned char>(c)) || c == ']')
        return Wrong(c == ']' ? "has a ']' without '['" : "has a character that no name of a node has");
    }
    if (names.front().size() + plain.size() > kMaxLetters)
      return Wrong(absl::StrCat("has a name of more than ", kMaxLetters, " letters"));
    for (std::string& name : names) name.append(plain.data(), plain.size());
    if (open == absl::string_view::npos) break;
    const size_t close = element.find(']', open);
    if (close == absl::string_view::npos) return Wrong("has a '[' without ']'");
    FT_ASSIGN_OR_RETURN(const std::vector<std::string> numbers,
                        ExpandBracket(element.substr(open + 1, close - open - 1)));
    if (names.size() * numbers.size() > kMaxNodes) return TooMany();
    std::vector<std::string> longer;
    for (const std::string& name : names) {
      for (const std::string& number : numbers) longer.push_back(name + number);
    }
    names = std::move(longer);
    element.remove_prefix(close + 1);
  }
  return names;
}

}  // namespace

absl::StatusOr<std::vector<std::string>> ExpandHostList(absl::string_view list) {
  std::vector<std::string> names;
  for (size_t begin = 0; begin <= list.size();) {
    // The element's end: a comma outside of brackets.
    size_t end = begin;
    for (bool inside = false; end < list.size() && (inside || list[end] != ','); ++end)
      inside = list[end] == '[' || (inside && list[end] != ']');
    FT_ASSIGN_OR_RETURN(std::vector<std::string> more, ExpandElement(list.substr(begin, end - begin)));
    if (names.size() + more.size() > kMaxNodes) return TooMany();
    std::move(more.begin(), more.end(), std::back_inserter(names));
    begin = end + 1;
  }
  return names;
}

absl::StatusOr<std::vector<int>> ExpandTasksPerNode(absl::string_view counts) {
  std::vector<int> tasks;
  for (absl::string_view element : absl::StrSplit(counts, ',')) {
    int64_t nodes = 1;
    if (const size_t open = element.find("(x"); open != absl::string_view::npos) {
      absl::string_view times = element.substr(open + 2);
      if (!absl::ConsumeSuffix(&times, ")")) return Wrong("has a '(x' without ')'");
      FT_ASSIGN_OR_RETURN(nodes, ReadDigits(times));
      element = element.substr(0, open);
    }
    FT_ASSIGN_OR_RETURN(const int64_t count, ReadDigits(element));
    if (static_cast<uint64_t>(nodes) > kMaxNodes - tasks.size()) return TooMany();
    tasks.insert(tasks.end(), static_cast<size_t>(nodes), static_cast<int>(count));
  }
  return tasks;
}

}  // namespace ft
