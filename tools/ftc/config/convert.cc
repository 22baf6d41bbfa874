#include "tools/ftc/config/convert.h"

#include <algorithm>

#include "fmt/format.h"
#include "runtime/base/did_you_mean.h"

namespace ftc {
namespace {

Conversion Mistake(std::string mistake) { return {.text = {}, .mistake = std::move(mistake), .remark = {}}; }
Conversion Text(std::string text) { return {.text = std::move(text), .mistake = {}, .remark = {}}; }
Conversion Leave() { return {}; }

std::string NoBool(std::string_view text) { return fmt::format("'{}' is neither true nor false", text); }

int BytesOf(std::string_view dtype) { return dtype == "fp32" ? 4 : 2; }

std::string MeaningOf(const std::optional<std::string>& text) { return text ? *text : "the default"; }

}  // namespace

Converter SameValue() {
  return {[](const Reading& r) { return Text(r.text); }, ""};
}

Converter FromBool(std::optional<std::string> if_true, std::optional<std::string> if_false) {
  const std::string doc = fmt::format("true: {}; false: {}", MeaningOf(if_true), MeaningOf(if_false));
  const auto convert = [=](const Reading& r) {
    const std::optional<bool> on = ReadBool(r.text);
    if (!on) return Mistake(NoBool(r.text));
    const std::optional<std::string>& text = *on ? if_true : if_false;
    return text ? Text(*text) : Leave();
  };
  return {convert, doc};
}

Converter FromWords(Synonyms words, bool others) {
  std::string doc;
  for (const auto& [from, to] : words)
    doc += fmt::format("{}{}: {}", doc.empty() ? "" : "; ", from, to.empty() ? "the default" : to);
  const auto convert = [=](const Reading& r) {
    std::vector<std::string_view> known;
    for (const auto& [from, to] : words) {
      if (Plain(r.text) == from) return to.empty() ? Leave() : Text(to);
      known.push_back(from);
    }
    return others ? Text(r.text) : Mistake(ft::UnknownName("value", r.text, known));
  };
  return {convert, doc};
}

Converter IntegerAbove(int64_t leave) {
  const auto convert = [=](const Reading& r) {
    const std::optional<int64_t> number = ReadInteger(r.text);
    if (!number) return Mistake(fmt::format("'{}' is no integer", r.text));
    return *number <= leave ? Leave() : Text(std::to_string(*number));
  };
  return {convert, fmt::format("at most {}: the default", leave)};
}

Converter ElementsToMib(std::string dtype) {
  const std::string doc = fmt::format("elements, in MiB by the size of {}", dtype);
  const auto convert = [=](const Reading& r) {
    double elements = 0;
    const std::string mistake = SetNumber(r.text, {.low = 0, .high = 1e15}, elements);
    if (!mistake.empty()) return Mistake(mistake);
    return Text(ShowNumber(elements * BytesOf(r.effective(dtype)) / 1048576));
  };
  return {convert, doc, true};
}

Converter ZeroStage() {
  return FromWords({{"0", "no_shard"}, {"1", "zero1"}, {"2", "shard_grad_op"}, {"3", "full_shard"}});
}

Converter OffloadDevice(std::string part) {
  return FromWords({{"cpu", std::move(part)}, {"none", ""}, {"null", ""}});
}

Converter FractionOfLr() {
  const auto convert = [](const Reading& r) {
    double fraction = 0;
    const std::string mistake = SetNumber(r.text, {.low = 0, .high = 1}, fraction);
    if (!mistake.empty()) return Mistake(mistake);
    return Text(ShowNumber(fraction * ReadNumber(r.effective("lr")).value_or(0)));
  };
  return {convert, "a fraction of lr", true};
}

Converter HalfOfBetas(bool first, std::string other_key) {
  const auto convert = [=](const Reading& r) {
    const std::string betas = r.effective("betas");
    const std::vector<std::string> usual = SplitList(betas);
    const std::string other = r.sibling(other_key).value_or(usual.at(first ? 1 : 0));
    return Text(first ? r.text + "," + other : other + "," + r.text);
  };
  return {convert, first ? "the first of the two" : "the second of the two", true};
}

Converter CountOf(std::string prefix) {
  const auto convert = [=](const Reading& r) {
    // DeepSpeed writes null where it counts itself.
    return Plain(r.text) == "null" ? Leave() : Text(prefix + ":" + r.text);
  };
  return {convert, prefix + ":N"};
}

Converter ActivationCheckpointingEnabled() {
  const auto convert = [](const Reading& r) {
    const std::optional<bool> on = ReadBool(r.text);
    if (!on) return Mistake(NoBool(r.text));
    if (!*on) return Text("none");
    // The other keys of the section say what is recomputed.
    const bool said = r.sibling("checkpoint_every_n_layers") || r.sibling("number_checkpoints");
    return said ? Leave() : Text("every_n:1");
  };
  return {convert, "true: every_n:1; false: none"};
}

Converter DeepSpeedOptimizer() {
  const auto convert = [](const Reading& r) -> Conversion {
    const std::string plain = Plain(r.text);
    if (plain == "adam") {
      const std::string mode = r.sibling("params.adam_w_mode").value_or("true");
      const std::optional<bool> decoupled = ReadBool(mode);
      if (!decoupled) return Mistake("params.adam_w_mode: " + NoBool(mode));
      if (!*decoupled) return Text("adam");
      return {
          .text = "adamw",
          .mistake = {},
          .remark = "Adam is adamw, as in DeepSpeed; for adam write adam_w_mode: false or optimizer: adam"};
    }
    return Text(r.text);
  };
  return {convert,
          "AdamW: adamw; Adam: adamw too, as in DeepSpeed, unless params.adam_w_mode is false; SGD: sgd; "
          "Lion: lion"};
}

Converter MaxLiveParameters() {
  const auto convert = [](const Reading& r) -> Conversion {
    double elements = 0;
    const std::string mistake = SetNumber(r.text, {.low = 0, .high = 1e18}, elements);
    if (!mistake.empty()) return Mistake(mistake);
    // Elements of a unit are known only when the model is: DeepSpeed's default and above keep two units, the
    // one in use and the next; none to spare keeps one; 1e12 and above stands for no limit.
    const char* limit = elements == 0 ? "1" : elements >= 1e12 ? "0" : "2";
    return {.text = limit,
            .mistake = {},
            .remark = fmt::format(
                "understood as limit_all_gathers={}, which counts units rather than elements", limit)};
  };
  return {convert,
          "0: 1, only the unit in use; 1e12 and more: 0, no limit; else 2, the unit in use and the next"};
}

Converter WorldSizeOfProcesses() {
  const auto convert = [](const Reading& r) -> Conversion {
    const std::optional<int64_t> ranks = ReadInteger(r.text);
    if (!ranks) return Mistake(fmt::format("'{}' is no integer", r.text));
    if (*ranks <= 1) return Leave();
    return {.text = std::to_string(*ranks),
            .mistake = {},
            .remark = fmt::format(
                "is understood as world_size={}, which budgets and costs are meant for; the launcher decides "
                "how many ranks there are",
                *ranks)};
  };
  return {convert, "what budgets are meant for"};
}

Converter DeepSpeedScheduler(std::array<std::string, 3> words) {
  constexpr std::array<const char*, 3> kTypes = {"WarmupLR", "WarmupDecayLR", "WarmupCosineLR"};
  std::string doc;
  for (size_t i = 0; i < kTypes.size(); ++i)
    doc += fmt::format("{}{}: {}", doc.empty() ? "" : "; ", kTypes[i], words[i]);
  const auto convert = [=](const Reading& r) {
    for (size_t i = 0; i < kTypes.size(); ++i) {
      if (Plain(r.text) == Plain(kTypes[i])) return Text(words[i]);
    }
    const std::string plain = Plain(r.text);
    if (plain == "onecycle")
      return Mistake(
          "OneCycle is not supported: it changes the momentum of Adam with the rate; WarmupLR, "
          "WarmupDecayLR and WarmupCosineLR are");
    if (plain == "lrrangetest")
      return Mistake("LRRangeTest is not supported; WarmupLR, WarmupDecayLR and WarmupCosineLR are");
    return Mistake(ft::UnknownName("scheduler", r.text, {kTypes[0], kTypes[1], kTypes[2]}));
  };
  return {convert, doc};
}

Converter OfSchedulers(std::vector<std::string> types, Converter converter) {
  const auto convert = [=, inner = converter.convert](const Reading& r) {
    const std::optional<std::string> type = r.elsewhere("scheduler.type");
    const bool fits = !type || std::find(types.begin(), types.end(), Plain(*type)) != types.end();
    return fits ? inner(r) : Mistake(fmt::format("{} has no such parameter", *type));
  };
  converter.convert = convert;
  return converter;
}

Converter OnlyOf(std::string type, Converter converter) {
  converter.doc = fmt::format("of {} alone", type);
  converter.convert = [type = Plain(type), inner = converter.convert](const Reading& r) {
    const std::optional<std::string> given = r.elsewhere("scheduler.type");
    return given && Plain(*given) == type ? inner(r) : Leave();
  };
  return converter;
}

}  // namespace ftc
