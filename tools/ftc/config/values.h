// How the value of a setting is read from text, checked and shown.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tools/ftc/config/configuration.h"

namespace ftc {

// What an argument of a value may be, for numbers: low <= x <= high, or low < x.
struct Range {
  double low = 0;
  double high = 1e300;
  bool above_low = false;
};

// Words that mean other words: {"backward_pre", "pre"}.
using Synonyms = std::vector<std::pair<std::string, std::string>>;

struct Value {
  // Fills the field of a configuration; returns what is wrong with the text, empty when nothing is.
  std::function<std::string(std::string_view text, Configuration& configuration)> set;
  // The field as text that `set` reads back to the same value.
  std::function<std::string(const Configuration& configuration)> show;
  std::string type;   // for readers: "number of at least 0"
  Synonyms synonyms;  // read by `set` too
};

// Lower case, - as _, without a leading "_" or "torch.": as FULL_SHARD, full-shard and full_shard are
// compared.
std::string Plain(std::string_view text);
// At commas; none for an empty text.
std::vector<std::string> SplitList(std::string_view text);
// true, false, yes, no, on, off in any case.
std::optional<bool> ReadBool(std::string_view text);
// A finite decimal number; nothing around it.
std::optional<double> ReadNumber(std::string_view text);
// An integer, also as 5e8 or 2.0, exactly.
std::optional<int64_t> ReadInteger(std::string_view text);
// Bytes: 1073741824, 1GiB, 1.5MiB, 500MB, 2KB.
std::optional<uint64_t> ReadBytes(std::string_view text);
// The shortest text that reads back to the same number.
std::string ShowNumber(double number);

// The mistakes of the readers above, worded.
std::string SetNumber(std::string_view text, const Range& range, double& number);
std::string SetInteger(std::string_view text, int64_t low, int64_t high, int64_t& number);
std::string SetBytes(std::string_view text, uint64_t& bytes);
std::string SetWord(std::string_view what, std::string_view text, const std::vector<std::string>& words,
                    const Synonyms& synonyms, std::string& word);

// Globs, none of them empty or with a control character in it, at least one.
std::string SetNames(std::string_view text, std::vector<std::string>& names);

std::string RangeText(const Range& range);
std::string JoinWords(const std::vector<std::string>& words, std::string_view separator);

// Factories. `field` maps a configuration (const or not) to a reference.

template <typename Field>
Value Number(Field field, Range range = {}) {
  return {[=](std::string_view text, Configuration& c) { return SetNumber(text, range, field(c)); },
          [=](const Configuration& c) { return ShowNumber(field(c)); },
          "number " + RangeText(range),
          {}};
}

template <typename Field>
Value Integer(Field field, int64_t low, int64_t high, Synonyms synonyms = {}) {
  const auto set = [=](std::string_view text, Configuration& c) {
    for (const auto& [from, to] : synonyms) {
      if (Plain(text) == from) text = to;
    }
    int64_t number = 0;
    const std::string mistake = SetInteger(text, low, high, number);
    if (mistake.empty()) field(c) = static_cast<std::decay_t<decltype(field(c))>>(number);
    return mistake;
  };
  return {set, [=](const Configuration& c) { return std::to_string(field(c)); },
          low == 0 ? "integer" : "integer of at least " + std::to_string(low), synonyms};
}

template <typename Field>
Value Bytes(Field field) {
  return {[=](std::string_view text, Configuration& c) { return SetBytes(text, field(c)); },
          [=](const Configuration& c) { return std::to_string(field(c)); },
          "bytes, with KB, MB, GB, TB, KiB, MiB, GiB, TiB if wanted",
          {}};
}

template <typename Field>
Value Word(std::string what, Field field, std::vector<std::string> words, Synonyms synonyms = {}) {
  const auto set = [=](std::string_view text, Configuration& c) {
    return SetWord(what, text, words, synonyms, field(c));
  };
  return {set, [=](const Configuration& c) { return field(c); }, JoinWords(words, ", "), synonyms};
}

template <typename Field>
Value Switch(Field field) {
  const auto set = [=](std::string_view text, Configuration& c) {
    const std::optional<bool> on = ReadBool(text);
    if (on) field(c) = *on;
    return on ? std::string() : "'" + std::string(text) + "' is neither true nor false";
  };
  return {set,
          [=](const Configuration& c) { return std::string(field(c) ? "true" : "false"); },
          "true, false",
          {}};
}

template <typename Field>
Value Patterns(Field field) {
  const auto set = [=](std::string_view text, Configuration& c) {
    if (Plain(text) == "none") return field(c).clear(), std::string();
    return SetNames(text, field(c));
  };
  return {set,
          [=](const Configuration& c) { return field(c).empty() ? "none" : JoinWords(field(c), ","); },
          "globs, or none",
          {}};
}

// Those with a grammar of their own; see docs/train-yaml.md.
Value StrategyValue();
Value WrapValue();
Value OptimizerValue();
Value BetasValue();
Value MeshValue();
Value RematValue();
Value OffloadValue();
Value LossScaleValue();
Value TargetValue();
Value AccumulateValue();

}  // namespace ftc
