#include "runtime/base/setting_value.h"

#include <algorithm>
#include <charconv>
#include <cmath>

#include "fmt/format.h"
#include "runtime/base/did_you_mean.h"

namespace ft {
namespace {

constexpr auto kExact = static_cast<double>(kExactInteger);

char LowerChar(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

}  // namespace

std::string Plain(std::string_view text) {
  std::string plain;
  for (char c : text) plain += c == '-' ? '_' : LowerChar(c);
  if (plain.rfind("torch.", 0) == 0) plain.erase(0, 6);
  while (plain.size() > 1 && plain[0] == '_') plain.erase(0, 1);
  return plain;
}

std::vector<std::string> SplitList(std::string_view text) {
  std::vector<std::string> parts;
  if (text.empty()) return parts;
  for (size_t begin = 0; begin <= text.size();) {
    const size_t end = std::min(text.find(',', begin), text.size());
    std::string_view part = text.substr(begin, end - begin);
    while (!part.empty() && part.front() == ' ') part.remove_prefix(1);
    while (!part.empty() && part.back() == ' ') part.remove_suffix(1);
    parts.emplace_back(part);
    begin = end + 1;
  }
  return parts;
}

std::optional<bool> ReadBool(std::string_view text) {
  const std::string plain = Plain(text);
  if (plain == "true" || plain == "yes" || plain == "on") return true;
  if (plain == "false" || plain == "no" || plain == "off") return false;
  return std::nullopt;
}

std::optional<double> ReadNumber(std::string_view text) {
  // from_chars knows neither a leading plus nor what overflows; "inf" and "nan" are no numbers here.
  if (!text.empty() && text[0] == '+') text.remove_prefix(1);
  double number = 0;
  const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), number);
  const bool whole = end == text.data() + text.size() && !text.empty();
  if (!whole || code != std::errc() || !std::isfinite(number)) return std::nullopt;
  return number;
}

std::optional<int64_t> ReadInteger(std::string_view text) {
  int64_t number = 0;
  if (!text.empty() && text[0] == '+') text.remove_prefix(1);
  const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (code == std::errc() && end == text.data() + text.size()) return number;
  const std::optional<double> real = ReadNumber(text);
  if (!real || std::abs(*real) > kExact || *real != std::floor(*real)) return std::nullopt;
  return static_cast<int64_t>(*real);
}

std::optional<uint64_t> ReadBytes(std::string_view text) {
  static constexpr std::pair<std::string_view, double> kUnits[] = {
      {"kib", 1024.0}, {"mib", 1048576.0}, {"gib", 1073741824.0}, {"tib", 1099511627776.0},
      {"kb", 1e3},     {"mb", 1e6},        {"gb", 1e9},           {"tb", 1e12}};
  std::string lower;
  for (char c : text) lower += LowerChar(c);
  double factor = 1;
  std::string_view rest = lower;
  for (const auto& [suffix, bytes] : kUnits) {
    if (!rest.ends_with(suffix)) continue;
    rest.remove_suffix(suffix.size());
    factor = bytes;
    break;
  }
  while (!rest.empty() && rest.back() == ' ') rest.remove_suffix(1);
  if (factor == 1) {
    const std::optional<int64_t> bytes = ReadInteger(rest);
    if (!bytes || *bytes < 0) return std::nullopt;
    return static_cast<uint64_t>(*bytes);
  }
  const std::optional<double> number = ReadNumber(rest);
  if (!number || *number < 0 || *number * factor > kExact) return std::nullopt;
  return static_cast<uint64_t>(std::llround(*number * factor));
}

std::string ShowNumber(double number) {
  // 1 rather than 1.0, as people write it.
  if (number == std::floor(number) && std::abs(number) < 1e15) return fmt::format("{:.0f}", number);
  return fmt::format("{}", number);
}

namespace {

std::string RangeText(const NumberRange& range) {
  std::string text = fmt::format("of at least {}", ShowNumber(range.low));
  // Larger ones only keep numbers finite.
  if (range.high < 1e15) text += fmt::format(" and at most {}", ShowNumber(range.high));
  return text;
}

}  // namespace

std::string JoinWords(const std::vector<std::string>& words, std::string_view separator) {
  return fmt::format("{}", fmt::join(words, separator));
}

std::string SetNumber(std::string_view text, const NumberRange& range, double& number) {
  const std::optional<double> read = ReadNumber(text);
  if (read && *read > range.high) return fmt::format("'{}' is above {:.6g}", text, range.high);
  if (!read || *read < range.low) return fmt::format("'{}' is no number {}", text, RangeText(range));
  number = *read == 0 ? 0 : *read;  // not -0
  return "";
}

std::string SetInteger(std::string_view text, int64_t low, int64_t high, int64_t& number) {
  const std::optional<int64_t> read = ReadInteger(text);
  if (!read) return fmt::format("'{}' is no integer", text);
  if (*read < low || *read > high) return fmt::format("'{}' is not in the range {} to {}", text, low, high);
  number = *read;
  return "";
}

std::string SetBytes(std::string_view text, uint64_t& bytes) {
  const std::optional<uint64_t> read = ReadBytes(text);
  if (!read) return fmt::format("'{}' is no size in bytes, such as 8GiB or 500MB", text);
  bytes = *read;
  return "";
}

std::string SetNames(std::string_view text, std::vector<std::string>& names) {
  std::vector<std::string> read = SplitList(text);
  const auto is_control = [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; };
  for (const std::string& name : read) {
    if (name.empty()) return fmt::format("'{}' has an empty pattern", text);
    if (std::any_of(name.begin(), name.end(), is_control)) return "a pattern has a control character";
  }
  if (read.empty()) return "wants globs of names, separated by commas";
  names = std::move(read);
  return "";
}

std::string SetWord(std::string_view what, std::string_view text, const std::vector<std::string>& words,
                    const Synonyms& synonyms, std::string& word) {
  std::string plain = Plain(text);
  for (const auto& [from, to] : synonyms) {
    if (plain == from) plain = to;
  }
  if (std::find(words.begin(), words.end(), plain) == words.end())
    return UnknownName(what, text, std::vector<std::string_view>(words.begin(), words.end()));
  word = plain;
  return "";
}

std::string SettingKey(std::string_view name) {
  std::string key;
  for (char c : name) key += c >= 'A' && c <= 'Z' ? std::string{'_', LowerChar(c)} : std::string(1, c);
  return key;
}

std::string SettingFlag(std::string_view name) {
  std::string flag = SettingKey(name);
  std::replace(flag.begin(), flag.end(), '_', '-');
  return flag;
}

namespace setting {

SettingValue<double> Number(double low, double high) {
  const NumberRange range{.low = low, .high = high};
  return {.set = [=](std::string_view text, double& value) { return SetNumber(text, range, value); },
          .show = ShowNumber,
          .type = "number " + RangeText(range),
          .range = range};
}

SettingValue<int64_t> Integer(int64_t low, int64_t high, Synonyms synonyms) {
  const auto set = [=](std::string_view text, int64_t& value) {
    for (const auto& [from, to] : synonyms) {
      if (Plain(text) == from) text = to;
    }
    return SetInteger(text, low, high, value);
  };
  return {.set = set,
          .show = [](int64_t value) { return std::to_string(value); },
          .type = low > 0 ? "integer of at least " + std::to_string(low) : "integer",
          .synonyms = synonyms,
          .range = {.low = static_cast<double>(low), .high = static_cast<double>(high)}};
}

SettingValue<uint64_t> Bytes() {
  return {.set = SetBytes,
          .show = [](uint64_t value) { return std::to_string(value); },
          .type = "bytes, with KB, MB, GB, TB, KiB, MiB, GiB, TiB if wanted"};
}

SettingValue<std::string> Word(std::string what, std::vector<std::string> words, Synonyms synonyms) {
  const auto set = [=](std::string_view text, std::string& value) {
    return SetWord(what, text, words, synonyms, value);
  };
  return {.set = set,
          .show = [](const std::string& value) { return value; },
          .type = JoinWords(words, ", "),
          .synonyms = synonyms};
}

SettingValue<bool> Switch() {
  const auto set = [](std::string_view text, bool& value) {
    const std::optional<bool> on = ReadBool(text);
    if (on) value = *on;
    return on ? std::string() : "'" + std::string(text) + "' is neither true nor false";
  };
  return {.set = set,
          .show = [](bool value) { return std::string(value ? "true" : "false"); },
          .type = "true, false"};
}

SettingValue<std::vector<std::string>> Patterns() {
  const auto set = [](std::string_view text, std::vector<std::string>& value) {
    if (Plain(text) == "none") return value.clear(), std::string();
    return SetNames(text, value);
  };
  const auto show = [](const std::vector<std::string>& value) {
    return value.empty() ? "none" : JoinWords(value, ",");
  };
  return {.set = set, .show = show, .type = "globs, or none"};
}

SettingValue<std::string> FloatType() {
  SettingValue<std::string> value = Word("dtype", {"fp32", "bf16", "fp16"},
                                         {{"float32", "fp32"},
                                          {"float", "fp32"},
                                          {"f32", "fp32"},
                                          {"no", "fp32"},
                                          {"bfloat16", "bf16"},
                                          {"float16", "fp16"},
                                          {"half", "fp16"},
                                          {"f16", "fp16"}});
  value.set = [set = std::move(value.set)](std::string_view text, std::string& word) {
    const bool is_fp8 = Plain(text).starts_with("fp8") || Plain(text).starts_with("float8");
    return is_fp8 ? "fp8 is of products alone: bf16, and fp8_recipe: tensorwise" : set(text, word);
  };
  return value;
}

std::string PartOfPrecision(const std::string& name, const std::string& text) {
  const std::string plain = Plain(text);
  const bool is_fp8 = plain == "fp8" || plain == "float8";
  if (name == "fp8_recipe") return is_fp8 ? "tensorwise" : "none";
  return is_fp8 ? "bf16" : text;
}

}  // namespace setting
}  // namespace ft
