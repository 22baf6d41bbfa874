#include "tools/ftexec/flag_values.h"

#include <optional>

#include "absl/status/statusor.h"
#include "runtime/data/data_list.h"

namespace ft::flag_value {

using namespace setting;

namespace {

// A text with a meaning of its own; `set` as SettingValue has it.
template <typename T>
SettingValue<T> Meaning(std::string (*set)(std::string_view text, T& value)) {
  return {.set = set, .show = [](const T&) { return std::string(); }, .type = ""};
}

std::string SetData(std::string_view text, std::vector<DataEntry>& entries) {
  absl::StatusOr<std::vector<DataEntry>> parsed = ParseDataList(std::string(text));
  if (!parsed.ok()) return std::string(parsed.status().message());
  entries = *std::move(parsed);
  return "";
}

}  // namespace

SettingValue<std::optional<cpu::Isa>> InstructionSet() {
  std::vector<std::pair<std::string_view, std::optional<cpu::Isa>>> words = {{"auto", std::nullopt}};
  for (cpu::Isa isa : cpu::UsableIsas()) words.emplace_back(cpu::Name(isa), isa);
  return Choice(words);
}

SettingValue<std::string> Text() {
  return Meaning<std::string>([](std::string_view text, std::string& value) {
    value = text;
    return std::string();
  });
}

SettingValue<std::vector<std::string>> Texts() {
  return Meaning<std::vector<std::string>>([](std::string_view text, std::vector<std::string>& value) {
    value = SplitList(text);
    return std::string();
  });
}

SettingValue<absl::Duration> Seconds(double low, double high) {
  const auto set = [of = Number(low, high)](std::string_view text, absl::Duration& value) {
    double seconds = 0;
    const std::string mistake = of.set(text, seconds);
    value = absl::Seconds(seconds);
    return mistake;
  };
  return {.set = set,
          .show = [](absl::Duration value) { return ShowNumber(absl::ToDoubleSeconds(value)); },
          .type = ""};
}

SettingValue<std::vector<DataEntry>> Data() { return Meaning(SetData); }

SettingValue<std::vector<DataEntry>> EvalData() {
  return Meaning<std::vector<DataEntry>>([](std::string_view text, std::vector<DataEntry>& entries) {
    const std::string mistake = SetData(text, entries);
    if (!mistake.empty() || !entries[0].weight.has_value()) return mistake;
    return std::string("takes no weights: every sequence is evaluated once");
  });
}

SettingValue<SaveInterval> SaveEvery() {
  return Meaning<SaveInterval>([](std::string_view text, SaveInterval& every) {
    absl::Duration time;
    if (const int64_t steps = ReadInteger(text).value_or(0); steps >= 1 && steps <= kMostKept) {
      every = {.steps = steps};
    } else if (absl::ParseDuration(std::string(text), &time) && time >= absl::Seconds(1) &&
               time <= absl::Hours(24 * 365)) {
      every = {.time = time};
    } else {
      return fmt::format("wants a number of steps, or a time such as 30m, not '{}'", text);
    }
    return std::string();
  });
}

SettingValue<std::optional<Mesh>> MeshValue() {
  return Meaning<std::optional<Mesh>>([](std::string_view text, std::optional<Mesh>& mesh) {
    const absl::StatusOr<Mesh> parsed = ParseMesh(text);
    if (!parsed.ok()) return std::string(parsed.status().message());
    mesh = *parsed;
    return std::string();
  });
}

SettingValue<std::optional<EmulatedLink>> Link() {
  return Meaning<std::optional<EmulatedLink>>([](std::string_view text, std::optional<EmulatedLink>& link) {
    const std::vector<std::string> pair = SplitList(text);
    const double rate = pair.size() == 2 ? ReadNumber(pair[0]).value_or(0) : 0;
    const double latency = pair.size() == 2 ? ReadNumber(pair[1]).value_or(-1) : -1;
    if (!(rate >= 1e-6 && rate <= 1e6 && latency >= 0 && latency <= 1e9))
      return fmt::format("wants GBPS,US, such as 10,50 for 10 Gb/s and 50 us, not '{}'", text);
    link = {.gigabits_per_s = rate, .latency_us = latency};
    return std::string();
  });
}

}  // namespace ft::flag_value
