#include "tools/ftc/config/target_file.h"

#include <map>
#include <utility>
#include <vector>

#include "fmt/format.h"
#include "runtime/base/did_you_mean.h"
#include "runtime/base/printable.h"
#include "runtime/base/regular_file.h"
#include "runtime/base/status_macros.h"
#include "runtime/plan/target_text.h"
#include "tools/ftc/config/target_figures.h"
#include "tools/ftc/config/train_yaml.h"

namespace ftc {
namespace {

using ft::Target;

// What the file may have meant: a key beside it, or one of the same last word elsewhere.
std::string UnknownKey(const std::string& key) {
  std::vector<std::string_view> known;
  for (const Figure& figure : Figures()) {
    const std::string_view whole = figure.key;
    known.push_back(whole);
    for (size_t dot = whole.find('.'); dot != whole.npos; dot = whole.find('.', dot + 1))
      known.push_back(whole.substr(0, dot));
  }
  std::string_view nearest = ft::NearestName(key, known);
  for (const std::string_view figure : known) {
    if (nearest.empty() && figure.ends_with("." + key.substr(key.rfind('.') + 1))) nearest = figure;
  }
  return fmt::format(
      "unknown key '{}'{}", key,
      nearest.empty() ? "; docs/targets.md has all keys" : fmt::format(", did you mean '{}'?", nearest));
}

absl::Status Store(const TrainYaml& file, const YamlEntry& entry, Target& target) {
  const auto refuse = [&](int line, const std::string& message) {
    return absl::InvalidArgumentError(fmt::format("{}:{}: {}", file.name, line, message));
  };
  const auto [figure, names] = FindFigure(entry.path);
  if (entry.is_section && IsSection(entry.path)) return absl::OkStatus();
  if (figure == nullptr && !IsSection(entry.path)) return refuse(entry.key_line, UnknownKey(entry.path));
  if (figure == nullptr || entry.is_section || entry.is_list)
    return refuse(entry.key_line, fmt::format("'{}' wants {}", entry.path,
                                              figure == nullptr ? "keys of its own" : "one value"));
  const std::string mistake = figure->set(names, entry.text, target);
  return mistake.empty() ? absl::OkStatus()
                         : refuse(entry.line, fmt::format("'{}': {}", entry.path, mistake));
}

// The section of a file where more is reached than the peak; empty for none.
std::string AbovePeak(const Target& target) {
  const std::pair<const char*, const Target::Rate*> rates[] = {
      {"fp32", &target.f32()}, {"bf16", &target.bf16()}, {"fp16", &target.f16()}, {"fp8", &target.float8()}};
  for (const auto& [name, rate] : rates) {
    if (ft::ExceedsPeak(*rate)) return fmt::format("compute.{}", name);
  }
  return "";
}

// Keys that others need beside them.
std::string MissingBeside(const Target& target, const std::map<std::string, int>& lines) {
  constexpr std::pair<const char*, const char*> kTogether[] = {
      {"measured.ranks", "measured.threads"},
      {"measured.timed.ranks", "measured.timed.threads"},
      {"compute.products.multiprocessors", "compute.products.tile_rows"},
      {"compute.products.multiprocessors", "compute.products.tile_columns"}};
  for (const auto& [one, other] : kTogether) {
    if (lines.contains(one) != lines.contains(other)) return lines.contains(one) ? other : one;
  }
  if (lines.contains("measured.timed.instruction_set") && !lines.contains("measured.timed.ranks"))
    return "measured.timed.ranks";
  for (const auto& [key, line] : lines) {
    const size_t end = key.rfind('.');
    if (!key.starts_with("kernels.timed.") || end == key.npos || key.ends_with(".us")) continue;
    const std::string timed = key.substr(0, end) + ".us";
    if (end >= std::string_view("kernels.timed.").size() && !lines.contains(timed)) return timed;
  }
  return target.has_measured() && !lines.contains("measured.ranks") ? "measured.ranks" : "";
}

// The line of the nearest section that the file has of a key.
int LineAround(const std::string& key, const std::map<std::string, int>& lines) {
  for (size_t dot = key.rfind('.'); dot != std::string::npos && dot > 0; dot = key.rfind('.', dot - 1)) {
    const auto section = lines.find(key.substr(0, dot));
    if (section != lines.end()) return section->second;
  }
  return 1;
}

absl::StatusOr<Target> ToTarget(const TrainYaml& file, const std::string& stem) {
  Target target;
  target.set_name(stem);
  std::map<std::string, int> lines;  // of the keys that are there
  for (const YamlEntry& entry : file.entries) {
    FT_RETURN_IF_ERROR(Store(file, entry, target));
    lines[entry.path] = entry.key_line;
  }
  std::string missing = MissingBeside(target, lines);
  for (const Figure& figure : Figures()) {
    if (figure.needed == Figure::Needed::kNo || lines.contains(figure.key)) continue;
    missing = figure.key;
    break;
  }
  if (!missing.empty())
    return absl::InvalidArgumentError(
        fmt::format("{}:{}: '{}' is missing", file.name, LineAround(missing, lines), missing));
  if (const std::string section = AbovePeak(target); !section.empty())
    return absl::InvalidArgumentError(fmt::format("{0}:{1}: '{2}.peak_tflops' is less than '{2}.tflops'",
                                                  file.name, lines[section + ".peak_tflops"], section));
  if (const absl::Status status = ft::VerifyTarget(target); !status.ok())
    return absl::InvalidArgumentError(fmt::format("{}:1: {}", file.name, std::string(status.message())));
  return target;
}

}  // namespace

absl::StatusOr<Target> ParseTarget(std::string_view text, const std::string& name, const std::string& stem) {
  FT_ASSIGN_OR_RETURN(const TrainYaml file, ParseTrainYaml(text, name, ft::kMostTargetEntries));
  return ToTarget(file, stem);
}

absl::StatusOr<Target> ReadTarget(const std::string& path) {
  FT_ASSIGN_OR_RETURN(const std::string text, ft::ReadText(path, "machine file", ft::kMostTargetTextBytes));
  const std::string last = path.substr(path.rfind('/') + 1);
  return ParseTarget(text, path, ft::OneLine(last.substr(0, last.rfind('.')), ft::kLongestTargetName));
}

bool IsTargetFile(std::string_view text) {
  return text.find('/') != text.npos || text.ends_with(".yaml") || text.ends_with(".yml");
}

}  // namespace ftc
