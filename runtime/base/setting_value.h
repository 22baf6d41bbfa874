// How the value of a setting is read from text, checked and shown: what settings.def says of each.
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace ft {

// Doubles hold integers exactly up to here. A plan keeps the numbers of a run as doubles.
inline constexpr int64_t kExactInteger = int64_t{1} << 53;
// Learning rates, scales of the loss and norms are f32 in kernels.
inline constexpr double kMostF32 = std::numeric_limits<float>::max();

// Low <= x <= high.
struct NumberRange {
  double low = 0;
  double high = 1e300;
};

// Words that mean other words: {"backward_pre", "pre"}.
using Synonyms = std::vector<std::pair<std::string, std::string>>;

template <typename T>
struct SettingValue {
  // Fills `value`; returns what is wrong with the text, empty when nothing is.
  std::function<std::string(std::string_view text, T& value)> set;
  // Text that `set` reads back to the same value.
  std::function<std::string(const T& value)> show;
  std::string type;        // for readers: "number of at least 0"
  Synonyms synonyms = {};  // read by `set` too
  NumberRange range = {};  // of numbers
};

// What few settings have.
struct SettingTraits {
  // Set when a list may be written in train.yaml: what its items, joined by commas, are preceded by.
  std::optional<std::string> list = {};
  // Settings that this one sets unless they are given themselves; it is nothing by itself.
  std::vector<std::string> stands_for = {};
  // What the text of this setting is for one of those; null: the same.
  std::string (*part)(const std::string& name, const std::string& text) = nullptr;
  // Several keys of one file add up rather than contradict each other.
  bool adds_up = false;
  // Its flag may stand without a value, which is "true".
  bool is_switch = false;
  // Said when it is given: it is kept but read by nothing yet.
  std::string no_effect = {};
  // Help of ftexec's flag where it means more there.
  std::string of_run = {};
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
std::string JoinWords(const std::vector<std::string>& words, std::string_view separator);

// The mistakes of the readers above, worded.
std::string SetNumber(std::string_view text, const NumberRange& range, double& number);
std::string SetInteger(std::string_view text, int64_t low, int64_t high, int64_t& number);
std::string SetBytes(std::string_view text, uint64_t& bytes);
std::string SetWord(std::string_view what, std::string_view text, const std::vector<std::string>& words,
                    const Synonyms& synonyms, std::string& word);
// Globs, none of them empty or with a control character in it, at least one.
std::string SetNames(std::string_view text, std::vector<std::string>& names);

// "minNumParams" and "min_num_params" -> "min_num_params", the key of a setting; "min-num-params", its flag.
std::string SettingKey(std::string_view name);
std::string SettingFlag(std::string_view name);

// The factories that rows of settings.def name.
namespace setting {

SettingValue<double> Number(double low = 0, double high = 1e300);
SettingValue<int64_t> Integer(int64_t low, int64_t high = std::numeric_limits<int64_t>::max(),
                              Synonyms synonyms = {});
SettingValue<uint64_t> Bytes();
SettingValue<std::string> Word(std::string what, std::vector<std::string> words, Synonyms synonyms = {});
SettingValue<bool> Switch();
SettingValue<std::vector<std::string>> Patterns();
// fp32, bf16, fp16 and their other names.
SettingValue<std::string> FloatType();
// What mixed_precision is for one of the settings that it stands for: fp8 is bf16 of all but products.
std::string PartOfPrecision(const std::string& name, const std::string& text);

}  // namespace setting
}  // namespace ft
