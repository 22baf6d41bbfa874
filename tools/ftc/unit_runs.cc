#include "tools/ftc/unit_runs.h"

#include <algorithm>
#include <optional>
#include <string_view>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "fmt/format.h"

namespace ftc {
namespace {

// A name around one of its numbers.
struct Numbered {
  std::string_view before;
  uint32_t number = 0;
  std::string_view after;
};

// Around the number that is the first to end at or behind `position`.
std::optional<Numbered> NumberAt(std::string_view name, size_t position) {
  size_t begin = std::min(position, name.size()), end = begin;
  while (begin > 0 && absl::ascii_isdigit(static_cast<unsigned char>(name[begin - 1]))) --begin;
  while (end < name.size() && absl::ascii_isdigit(static_cast<unsigned char>(name[end]))) ++end;
  Numbered parts{.before = name.substr(0, begin), .after = name.substr(end)};
  const std::string_view digits = name.substr(begin, end - begin);
  // "01" is not written as 1 would be.
  if (digits.empty() || (digits.size() > 1 && digits[0] == '0') ||
      !absl::SimpleAtoi(std::string(digits), &parts.number))
    return std::nullopt;
  return parts;
}

// The two names around the one number in which they differ.
std::optional<std::pair<Numbered, Numbered>> Difference(std::string_view a, std::string_view b) {
  const auto at =
      static_cast<size_t>(std::mismatch(a.begin(), a.end(), b.begin(), b.end()).first - a.begin());
  const std::optional<Numbered> first = NumberAt(a, at), second = NumberAt(b, at);
  if (!first || !second || first->before != second->before || first->after != second->after)
    return std::nullopt;
  return std::pair(*first, *second);
}

bool Counts(std::string_view a, std::string_view b) {
  const auto difference = Difference(a, b);
  return difference && difference->second.number == difference->first.number + 1;
}

std::string NameOf(const ft::proto::Plan& plan, const UnitRun& run) {
  const std::string& first = plan.units(run.first).name();
  if (run.units == 1) return first;
  const auto ends = Difference(first, plan.units(run.first + run.units - 1).name());
  return fmt::format("{}{}..{}{} ({} units, each)", ends->first.before, ends->first.number,
                     ends->second.number, ends->first.after, run.units);
}

}  // namespace

std::vector<UnitRun> EqualUnits(const ft::proto::Plan& plan, const ft::TrafficReport& traffic) {
  std::vector<UnitRun> runs;
  for (int i = 0; i < plan.units_size(); ++i) {
    UnitRun* run = runs.empty() ? nullptr : &runs.back();
    const bool joins =
        run != nullptr && traffic.by_unit[i] == traffic.by_unit[i - 1] &&
        Counts(plan.units(i - 1).name(), plan.units(i).name()) &&
        // The same number counts all the way.
        (run->units == 1 || Difference(plan.units(run->first).name(), plan.units(i).name()).has_value());
    if (joins)
      ++run->units;
    else
      runs.push_back({.name = {}, .first = i, .units = 1});
  }
  for (UnitRun& run : runs) run.name = NameOf(plan, run);
  return runs;
}

}  // namespace ftc
